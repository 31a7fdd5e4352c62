"""An API server in memory, behind the same seam as the real one: whatever `handler.cluster.api.Api` sends over its pool arrives here.

It knows a handful of kinds without merged lists and what the handler relies on: aggregated discovery, paged label-selected LISTs, metadata
only, server-side apply with `managedFields`, compare-and-swap, preconditions of deletes, dry runs, the `Date` of a clock that a test sets.
`tests/rooms/cluster/test_contract.py` holds it and the real one to the same behaviour. Not here: watches, admission webhooks, RBAC, CRDs.
"""

from __future__ import annotations

from tests.fakes.apiserver.connection import Call, FakeConnection
from tests.fakes.apiserver.server import ApiServer

__all__ = ["ApiServer", "Call", "FakeConnection"]
