"""One member's marks are written on exactly the version that was read; one that has moved is read again, three times at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from handler.cluster.live import probe
from handler.engine.planner.planner import Planner
from handler.model.errors import ApiRefused, Moved
from handler.model.names import Identity, Resource
from handler.model.plan import Change

_TRIES = 3
Attempt = Callable[[Resource, dict[str, Any] | None], Change | None]
"""Writes by what lives now, None: by what was read before; returns what it wrote, None: the object isn't the target's any more."""


def written(planner: Planner, fence: Callable[[], None], identity: Identity, attempt: Attempt) -> Change | None:
    """Return what an attempt wrote of a member; None: it is gone, or isn't the target's any more. Raises AnnealError."""
    resource, live = planner.discovery.preferred(identity.group_kind), None
    for left in reversed(range(_TRIES)):
        if resource is None:
            break
        try:
            return attempt(resource, live)
        except ApiRefused as error:
            if error.status != 404:
                raise
            return None
        except Moved:
            fence()
            if not left:
                raise
            live = probe(planner.api, [(resource, identity.namespace, identity.name)]).get(identity)
            if live is None:
                return None
    return None
