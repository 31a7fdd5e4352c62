"""A cluster in memory that `reconcile` is tried on, and what lies in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from handler.library import Client
from handler.model.names import Identity, identity_of
from tests.fakes.apiserver import ApiServer, FakeConnection
from tests.fakes.apiserver.connection import Call, Reply
from tests.fakes.apiserver.kinds import WORKLOADS
from tests.fakes.apiserver.server import Asked

LABELS = {"app": "shop"}


def config(name: str, data: dict[str, str] | None = None, labels: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    given = {"name": name, "namespace": "n", "labels": labels or LABELS, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": given, "data": data or {"a": "1"}}


def named(name: str, kind: str = "ConfigMap", group: str = "") -> Identity:
    return Identity(group, kind, "n", name)


@dataclass
class Cluster:
    """A cluster, a client of it and what it was asked. `meet`: what happens before a request is answered."""

    server: ApiServer = field(default_factory=lambda: ApiServer(time.time, WORKLOADS))
    asked: list[tuple[str, str]] = field(default_factory=list)
    meet: Callable[[Call], None] = lambda call: None

    def __post_init__(self) -> None:
        self.client = Client(connection=FakeConnection(self.server, self._way))
        self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
        self.client.find("v1", "ConfigMap")
        self.asked.clear()

    def _way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        self.asked.append((call.asked.method, call.asked.path))
        self.meet(call)
        return do()

    def put(self, body: dict[str, Any]) -> dict[str, Any]:
        """Write as another manager does."""
        resource = self.client.find(body["apiVersion"], body["kind"])
        assert resource
        identity = identity_of(body)
        path = resource.path(identity.namespace, identity.name)
        return self.server.must(Asked("PATCH", path, {"fieldManager": "other", "force": "true"}, body, "application/apply-patch+yaml", ""))

    def live(self, name: str, kind: str = "ConfigMap") -> dict[str, Any] | None:
        found = self.server.store.get(named(name, kind))
        return found.body if found else None

    def methods(self) -> list[str]:
        found, self.asked[:] = [method for method, _ in self.asked], []
        return found
