"""The way to a git host by SSH: one pinned host, one key. paramiko is imported here alone, and only for such a repository.

known_hosts and private_key -> ssh_connection (signed in, bounded) -> ssh_upload_pack (the port).
"""
