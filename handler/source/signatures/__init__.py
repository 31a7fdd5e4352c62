"""Whose commits count (`verify` of a target): signed_commit -> sshsig, openpgp (by which key) -> verified_source, which judges."""
