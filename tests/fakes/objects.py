"""The `Objects` port in memory, with the API server's compare-and-swap. It passes the same contract tests as the real one.

`before` is called with (verb, body) ahead of each request: a test makes it raise, or write something itself.
"""

from __future__ import annotations

import copy
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from handler.cluster.live import matches
from handler.model.errors import ApiRefused, Moved, Problem

Body = dict[str, Any]


class FakeObjects:
    """ConfigMaps, Leases and Namespaces. `clock`: the server's, in seconds since the epoch."""

    def __init__(self, clock: Callable[[], float] = time.time, namespaces: tuple[str, ...] = ("anneal-system",)) -> None:
        self.clock = clock
        self.before: Callable[[str, Body], None] | None = None
        self.writes = 0
        self._lock = threading.RLock()
        self._version = 100
        self._stored: dict[tuple[str, str, str], Body] = {}
        for name in namespaces:
            self._store({"kind": "Namespace", "metadata": {"name": name}}, str(uuid.uuid4()))

    def get(self, kind: str, namespace: str, name: str) -> Body | None:
        self._announce("get", {"kind": kind, "metadata": {"namespace": namespace, "name": name}})
        with self._lock:
            return copy.deepcopy(self._stored.get((kind, namespace, name)))

    def overview(self, kind: str, namespace: str, selector: str = "") -> list[Body]:
        self._announce("list", {"kind": kind, "metadata": {"namespace": namespace, "name": ""}})
        with self._lock:
            found = [body["metadata"] for key, body in self._stored.items() if key[:2] == (kind, namespace)]
            return [{"metadata": copy.deepcopy(each)} for each in found if matches({"metadata": each}, selector)]

    def create(self, body: Body) -> Body:
        self._announce("create", body)
        with self._lock:
            if _key(body) in self._stored:
                raise Moved.of("/".join(_key(body)), "exists already")
            if body["kind"] != "Namespace" and ("Namespace", "", body["metadata"]["namespace"]) not in self._stored:
                raise ApiRefused(Problem("/".join(_key(body)), "its namespace doesn't exist"), status=404)
            return self._store(body, str(uuid.uuid4()))

    def replace(self, body: Body) -> Body:
        self._announce("replace", body)
        with self._lock:
            live = self._stored.get(_key(body))
            if live is None:
                raise Moved.of("/".join(_key(body)), "is gone")
            wanted, found = body["metadata"], live["metadata"]
            if (wanted["resourceVersion"], wanted.get("uid", found["uid"])) != (found["resourceVersion"], found["uid"]):
                raise Moved.of("/".join(_key(body)), "changed")
            return self._store(body, found["uid"])

    def delete(self, kind: str, namespace: str, name: str, *, uid: str, resource_version: str = "") -> bool:
        with self._lock:
            live = self._stored.get((kind, namespace, name))
            if live is None:
                return False
            if uid != live["metadata"]["uid"] or resource_version not in ("", live["metadata"]["resourceVersion"]):
                raise Moved.of(f"{kind}/{namespace}/{name}", "changed")
            del self._stored[(kind, namespace, name)]
            return True

    def server_time(self) -> float:
        return float(int(self.clock()))

    def _announce(self, verb: str, body: Body) -> None:
        if self.before:
            self.before(verb, body)

    def _store(self, body: Body, uid: str) -> Body:
        self._version += 1
        self.writes += 1
        stored = copy.deepcopy(body)
        stored["metadata"] |= {"uid": uid, "resourceVersion": str(self._version)}
        for empty in ("labels", "annotations"):
            if not stored["metadata"].get(empty):
                stored["metadata"].pop(empty, None)
        for empty in ("data", "binaryData"):
            if not stored.get(empty):
                stored.pop(empty, None)
        self._stored[_key(body)] = stored
        return copy.deepcopy(stored)


def _key(body: Body) -> tuple[str, str, str]:
    return (body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"])
