"""The way to a git host by SSH: one pinned host, one key. paramiko is imported here alone, and only for such a repository."""
