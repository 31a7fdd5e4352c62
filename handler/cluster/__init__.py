"""The cluster: discovery, LISTs, applies, deletes, watches. The only room with `kubernetes`.

The room's law: objects are plain dicts, as JSON has them; a vendor exception never leaves (`errors` translates it); nothing is written
by `live`, `discovery`, `wait`, `access` and `DryRunner`; every object write of a run goes through `Writer`, which asks its fence before
each attempt; text of the API server about a Secret is reduced to field names, because it may quote values, and about any other object
repeated without the values of its sensitive fields (`quoted`).

In the flow: `connect` finds the cluster, `Api` speaks to it with one identity, `Discovery` names its kinds, `live` reads, `DryRunner`
validates, `Writer` applies and deletes, `wait` sees it stand or go, `Objects` keeps state and Lease.
"""
