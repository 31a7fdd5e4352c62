"""Whether a release works: what a Rollout asks for, its hooks, its checks and its canaries. Pure.

Law: nothing here asks a cluster or writes; `handler.engine` follows live objects and carries steps out.
"""
