"""Whose commits count: what `verify` of a target asks for. A commit that no configured key signed leaves this room with an error alone.

signature (what was signed, cut from the raw commit) -> sshsig, openpgp (who signed it) -> verified (the target's source, which judges).
openpgp stands on pgp_certificate (what each configured key is now) and pgp_arithmetic (whether a key signed these bytes).
"""
