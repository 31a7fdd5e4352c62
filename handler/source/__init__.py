"""Job -> Tree: resolves a ref and brings exactly that commit into memory. The only room with dulwich; no git program is run.

A host is not trusted: what it sends is counted as it arrives, sized before it is inflated, hashed, and every tree is checked before its
names are seen. Way: git_host -> http_transport or ssh -> git_protocol -> pack -> git_objects, tree_names -> fetched_tree. fetch_cache
asks once for all targets; signatures judge commits; local_tree reads directories on disk by the same rules.
"""
