"""Whose commits count: what `verify` of a target asks for. Without a configured key's signature a commit leaves only an error.

signed_commit (what was signed) -> sshsig, openpgp with pgp_arithmetic (by which key) -> verified_source (the source that judges).
"""
