"""The Kubernetes API: discovery, LISTs, applies, deletes, watches. The only room that imports `kubernetes`.

Law: objects are plain dicts, as JSON has them. No vendor exception leaves the room (`errors` translates it). `live`, `discovery`,
`wait_until`, `access_review` and `DryRunner` write nothing; every object write of a run goes through `Writer`, which checks its fence
before each attempt. The API server's text about a Secret is reduced to field names, about any other object it is repeated without the
values of sensitive fields (`quoted_values`).

In the flow: `connect` finds the cluster, `Api` sends requests with one identity, `Discovery` names its kinds, `live` reads, `DryRunner`
validates, `Writer` applies and deletes, `wait_until` waits until objects are ready or gone, `OwnObjects` stores state and Lease.
"""
