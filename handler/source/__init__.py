"""Job -> Tree: finds out what a ref points to and brings exactly that commit into memory.

The only room with dulwich, loaded for what comes from a host or lies in a repository. Nothing is checked out, no git
program is run, nothing from a payload is used as an address.
A host is not trusted: what it sends is counted as it arrives, sized before it is inflated, hashed, and every tree is checked
before anyone sees a name of it.

    host (GitHost) -> access -> transport, connections (HTTP) | ssh -> wire (git protocol) -> pack (objects) -> checks -> tree (FetchedTree)
    fetches, looks, cache, sharing: one request for all who want the same, one bound for all that is kept; signed: whose commits count
    local (open_local, open_beside, open_files): a directory or files on disk, under the same rules
"""
