"""Records of a run that waits for health."""

from __future__ import annotations

from handler.state.record import RunStatus, State, WaitingFor
from tests.unit.state.samples import NOON, sha

API, WEB = "Deployment/shop/api: 0 of 1 replica available", "Deployment/shop/web: 1 of 3 replicas available"


def waiting(*missing: str, **more: object) -> State:
    known = WaitingFor(sha(), "everything", NOON)
    return State("shop", "default", "uid", "url", waiting=known, status=RunStatus("applied", unhealthy=missing), **more)  # type: ignore[arg-type]  # its fields
