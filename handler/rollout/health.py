"""Live object -> Health, by kstatus' rules."""

from __future__ import annotations

from typing import Any

from handler.model.health import Health, Status
from handler.model.names import GroupKind

ALWAYS_HEALTHY = frozenset({GroupKind("", "ConfigMap"), GroupKind("", "Secret")})
"""Kinds that have nothing to wait for, so that nobody need look."""


def judge(live: dict[str, Any] | None, generation: int, now: float) -> Health:  # noqa: ARG001 - some kinds settle with time
    """Judge a live object; None: it isn't there. `generation`: the least that its status must be of; `now`: seconds since the epoch."""
    if live is None:
        return Health(Status.NOT_FOUND, "is not there")
    metadata, status = live["metadata"], live.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return Health(Status.TERMINATING, "is being deleted")
    observed = status.get("observedGeneration")
    wanted = max(generation, int(metadata.get("generation") or 0))
    if observed is not None and observed < wanted:
        return Health(Status.IN_PROGRESS, f"generation {wanted} is not observed yet, only {observed}")
    found = {str(each.get("type")): each for each in status.get("conditions") or []}
    if (found.get("Ready") or {}).get("status", "True") != "True":
        return Health(Status.IN_PROGRESS, str(found["Ready"].get("message") or "is not ready"))
    return Health(Status.CURRENT)
