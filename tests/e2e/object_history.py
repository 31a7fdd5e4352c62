"""What happened to objects in which order: every state of some kinds in a shop's namespaces, as the API server's watches tell it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from handler.cluster.connect import ClusterConnection
from handler.model.names import identity_of
from tests.e2e.documents import Document
from tests.e2e.watch_streams import WatchStreams

Holds = Callable[[Document], bool]


@dataclass
class Watching:
    """Follows while it is open, and to the end of that."""

    streams: WatchStreams
    paths: tuple[str, ...]
    events: list[tuple[int, str, Document]] = field(default_factory=list)
    """Revision, ADDED, MODIFIED or DELETED, and the object."""

    @classmethod
    def of(cls, connection: ClusterConnection, *namespaces: str) -> Watching:
        """Follow Jobs, Deployments and ConfigMaps."""
        kinds = (("/apis/batch/v1", "jobs"), ("/apis/apps/v1", "deployments"), ("/api/v1", "configmaps"))
        paths = tuple(f"{root}/namespaces/{name}/{kind}" for root, kind in kinds for name in namespaces)
        return cls(WatchStreams(connection), paths)

    def __enter__(self) -> Watching:
        for path in self.paths:
            self.streams.follow(path, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self.streams.drain(lambda: {live["metadata"]["name"] for _, _, live in self.events})
        self.streams.close()

    def first(self, document: Document, holds: Holds = lambda _: True, kind: str = "") -> int:
        """Return the revision at which something held first of an object; 0: it never did."""
        wanted = identity_of(document)
        ordered = sorted(self.events, key=lambda one: one[0])
        found = [n for n, event, live in ordered if identity_of(live) == wanted and kind in ("", event) and holds(live)]
        return found[0] if found else 0

    def uids(self, document: Document) -> set[str]:
        """Return the uids that an object has had."""
        wanted = identity_of(document)
        return {live["metadata"]["uid"] for _, _, live in self.events if identity_of(live) == wanted}

    def _note(self, event: dict[str, Any]) -> None:
        if event["type"] != "BOOKMARK":
            self.events.append((int(event["object"]["metadata"]["resourceVersion"]), event["type"], event["object"]))


def is_complete(live: Document) -> bool:
    """Whether a Job is Complete."""
    conditions = (live.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Complete" and each["status"] == "True" for each in conditions)


def is_available(live: Document) -> bool:
    """Whether all pods of a Deployment are available."""
    return bool((live.get("status") or {}).get("availableReplicas", 0) >= (live["spec"].get("replicas") or 0))
