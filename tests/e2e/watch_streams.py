"""Watches of the API server, each read by a thread until all that happened before the end is reported."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import urllib3

from handler.cluster.connect import ClusterConnection
from tests.e2e.documents import Document
from tests.patience import PATIENCE, until

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


@dataclass
class WatchStreams:
    """Resource versions are etcd's revisions, hence one order over all kinds."""

    connection: ClusterConnection
    _paths: list[str] = field(default_factory=list)
    _open: list[urllib3.BaseHTTPResponse] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def follow(self, path: str, note: Callable[[dict[str, Any]], None]) -> None:
        """Watch a collection from now on; `note` gets each event."""
        since = json.loads(self._get(path).data)["metadata"]["resourceVersion"]
        response = self._get(f"{path}?watch=true&timeoutSeconds=900&resourceVersion={since}", preload=False)
        thread = threading.Thread(target=_read, args=(response, note), daemon=True)
        self._paths.append(path)
        self._open.append(response)
        self._threads.append(thread)
        thread.start()

    def drain(self, names: Callable[[], set[str]]) -> None:
        """Wait until all that has happened is reported: `names` are those of the objects noted so far."""
        wanted = {self._last(path) for path in self._paths}
        until(lambda: wanted <= names())

    def close(self) -> None:
        for response in self._open:
            with contextlib.suppress(ValueError, OSError, RuntimeError):
                response.shutdown()
        for thread in self._threads:
            thread.join(PATIENCE)
        for response in self._open:
            response.close()

    def _last(self, path: str) -> str:
        """Create an object where a watch looks, and return its name: once that is reported, so is all that came before it."""
        kind = path.rpartition("/")[2]
        body = {"metadata": {"generateName": "seen-"}} | ({"spec": _SPECS[kind]} if kind in _SPECS else {})
        headers = {"Authorization": self.connection.authorization(), "Content-Type": "application/json"}
        pool, url = self.connection.pool(4), self.connection.host + path
        answer = pool.request("POST", url, body=json.dumps(body), headers=headers, timeout=PATIENCE)
        assert answer.status == 201, answer.data
        return str(json.loads(answer.data)["metadata"]["name"])

    def _get(self, path: str, *, preload: bool = True) -> urllib3.BaseHTTPResponse:
        headers = {"Authorization": self.connection.authorization()}
        return self.connection.pool(8).request("GET", self.connection.host + path, headers=headers, preload_content=preload, timeout=900.0)


def _read(response: urllib3.BaseHTTPResponse, note: Callable[[dict[str, Any]], None]) -> None:
    rest = b""
    with contextlib.suppress(urllib3.exceptions.HTTPError, OSError, ValueError):
        while data := response.read1(1 << 16):
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                note(json.loads(line))
