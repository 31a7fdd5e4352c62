"""The Kubernetes API: discovery, LISTs, applies, deletes, watches. The only room that imports `kubernetes`.

Objects are plain dicts; no vendor exception leaves the room (`errors`). Every object write of a run goes through `Writer`, which checks its
fence before each attempt; state and Lease through `OwnObjects`. `connect` finds the cluster, `Api` sends with one identity. The server's
messages are repeated without sensitive values (`quoted_values`).
"""
