"""Whether a release works: health of live objects, what a Rollout asks for, its checks and its canaries. Pure.

Law: nothing here asks a cluster or writes; `handler.engine` follows live objects and carries steps out.
"""
