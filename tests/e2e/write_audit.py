"""Who may have written when: the order of every change to a fleet's objects and Leases, as the API server's watches tell it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from handler.cluster.connect import ClusterConnection
from tests.e2e.many_targets import Fleet
from tests.e2e.one_target import STATES
from tests.e2e.watch_streams import WatchStreams


@dataclass
class Audit:
    """Follows from `start` to `stop`."""

    fleet: Fleet
    streams: WatchStreams
    events: list[tuple[int, str, str, str]] = field(default_factory=list)
    """Revision, `object` or `lease`, name, and who holds the Lease."""

    @classmethod
    def start(cls, fleet: Fleet, connection: ClusterConnection) -> Audit:
        made = cls(fleet, WatchStreams(connection))
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{STATES}/leases"
        made.streams.follow(leases, partial(made._note, "lease"))  # first: a worker that writes then has taken its Lease before our eyes
        made.streams.follow(f"/api/v1/namespaces/{fleet.name}/configmaps", partial(made._note, "object"))
        return made

    def stop(self) -> None:
        """Stop, once all that has happened is reported."""
        self.streams.drain(lambda: {name for _, _, name, _ in self.events})
        self.streams.close()

    def unguarded(self) -> list[tuple[int, str]]:
        """Return the writes of objects that happened while no worker held their target's Lease."""
        holders: dict[str, str] = {}
        found = []
        for revision, kind, name, holder in sorted(self.events):
            if kind == "lease":
                holders[name] = holder
            elif name.startswith(f"{self.fleet.name}-") and not holders.get(f"anneal-{name.rpartition('-')[0]}"):
                found.append((revision, name))
        return found

    def writes(self) -> int:
        return sum(kind == "object" for _, kind, _, _ in self.events)

    def _note(self, kind: str, event: dict[str, Any]) -> None:
        item = event["object"]
        holder = str((item.get("spec") or {}).get("holderIdentity") or "") if kind == "lease" and event["type"] != "DELETED" else ""
        self.events.append((int(item["metadata"]["resourceVersion"]), kind, item["metadata"]["name"], holder))
