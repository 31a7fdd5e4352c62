"""The way to a git host by SSH: one pinned host, one key, nothing else is tried. paramiko is loaded here alone, by who needs it.

known_hosts (whom we trust) and private_key (who we are) -> connection (signed in, with an end to everything) -> upload_pack (the port).
"""
