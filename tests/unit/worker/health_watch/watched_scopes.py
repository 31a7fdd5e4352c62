"""Scopes of a cluster that serves two kinds, brought in line with what targets declare."""

from __future__ import annotations

from typing import Any

from handler.model.names import GroupKind, Resource
from handler.worker.health_watch.scopes import Key, Scopes
from handler.worker.health_watch.watched_target import WatchedTarget

SERVED = {
    GroupKind("apps", "Deployment"): Resource("apps", "v1", "Deployment", "deployments", namespaced=True),
    GroupKind("", "Service"): Resource("", "v1", "Service", "services", namespaced=True),
}


class Discovery:
    """Serves two kinds; of the groups of `stale` it isn't known what they serve."""

    def __init__(self, *stale: str) -> None:
        self.stale = frozenset(stale)

    def preferred(self, kind: GroupKind) -> Resource | None:
        return SERVED.get(kind)


def adjusted(scopes: Scopes, *targets: WatchedTarget, stale: str = "") -> list[Key]:
    api: Any = None
    discovery: Any = Discovery(stale)
    return scopes.adjust((each, api, discovery) for each in targets)
