"""What happened to objects in which order: every state of some kinds in a shop's namespaces, as the API server's watches tell it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import urllib3

from handler.cluster.connect import ClusterConnection
from handler.model.names import identity_of
from tests.e2e.documents import Document
from tests.e2e.serve_process import until

Holds = Callable[[Document], bool]
_POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none:1"}]}
_LABELS = {"seen": "all"}
_SPECS: dict[str, Document] = {
    "jobs": {"suspend": True, "template": {"spec": _POD}},
    "deployments": {
        "replicas": 0,
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": {"containers": _POD["containers"]}},
    },
    "leases": {},
}


def last(connection: ClusterConnection, path: str) -> str:
    """Create an object where a watch looks, and return its name: once that is told, so is all that came before it."""
    kind = path.rpartition("/")[2]
    body = {"metadata": {"generateName": "seen-"}} | ({"spec": _SPECS[kind]} if kind in _SPECS else {})
    headers = {"Authorization": connection.authorization(), "Content-Type": "application/json"}
    answer = connection.pool(4).request("POST", connection.host + path, body=json.dumps(body), headers=headers, timeout=60.0)
    assert answer.status == 201, answer.data
    return str(json.loads(answer.data)["metadata"]["name"])


@dataclass
class Watching:
    """Follows while it is open, and to the end of that. Resource versions are etcd's revisions, hence one order over all kinds."""

    connection: ClusterConnection
    paths: tuple[str, ...]
    events: list[tuple[int, str, Document]] = field(default_factory=list)
    """Revision, ADDED, MODIFIED or DELETED, and the object."""
    _open: list[urllib3.BaseHTTPResponse] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    @classmethod
    def of(cls, connection: ClusterConnection, *namespaces: str) -> Watching:
        """Follow Jobs, Deployments and ConfigMaps."""
        kinds = (("/apis/batch/v1", "jobs"), ("/apis/apps/v1", "deployments"), ("/api/v1", "configmaps"))
        return cls(connection, tuple(f"{root}/namespaces/{name}/{kind}" for root, kind in kinds for name in namespaces))

    def __enter__(self) -> Watching:
        for path in self.paths:
            since = json.loads(self._get(path).data)["metadata"]["resourceVersion"]
            response = self._get(f"{path}?watch=true&timeoutSeconds=900&resourceVersion={since}", preload=False)
            thread = threading.Thread(target=self._read, args=(response,), daemon=True)
            self._open.append(response)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            wanted = {last(self.connection, path) for path in self.paths}
            until(lambda: wanted <= {live["metadata"]["name"] for _, _, live in self.events})
        for response in self._open:
            with contextlib.suppress(ValueError, OSError, RuntimeError):
                response.shutdown()
        for thread in self._threads:
            thread.join(30)
        for response in self._open:
            response.close()

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

    def _get(self, path: str, *, preload: bool = True) -> urllib3.BaseHTTPResponse:
        headers = {"Authorization": self.connection.authorization()}
        return self.connection.pool(8).request("GET", self.connection.host + path, headers=headers, preload_content=preload, timeout=900.0)

    def _read(self, response: urllib3.BaseHTTPResponse) -> None:
        rest = b""
        with contextlib.suppress(urllib3.exceptions.HTTPError, OSError, ValueError):
            while data := response.read1(1 << 16):
                *whole, rest = (rest + data).split(b"\n")
                for line in whole:
                    self._note(json.loads(line))

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
