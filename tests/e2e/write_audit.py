"""Who may have written when: the order of every change to a fleet's objects and Leases, as the API server's watches tell it."""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import dataclass, field
from typing import Any

import urllib3

from handler.cluster.connect import ClusterConnection
from tests.e2e.many_targets import Fleet
from tests.e2e.object_history import last
from tests.e2e.one_target import STATES
from tests.e2e.serve_process import until


@dataclass
class Audit:
    """Follows from `start` to `stop`. Resource versions are etcd's revisions, hence one order over all kinds."""

    fleet: Fleet
    connection: ClusterConnection
    events: list[tuple[int, str, str, str]] = field(default_factory=list)
    """Revision, `object` or `lease`, name, and who holds the Lease."""
    _open: list[urllib3.BaseHTTPResponse] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> Audit:
        self._follow(self._leases, "lease")  # first: whoever writes then has taken its Lease before our eyes
        self._follow(self._objects, "object")
        return self

    def stop(self) -> None:
        """Stop, once all that has happened is told."""
        wanted = {last(self.connection, path) for path in (self._leases, self._objects)}
        until(lambda: wanted <= {name for _, _, name, _ in self.events})
        for response in self._open:
            with contextlib.suppress(ValueError, OSError, RuntimeError):
                response.shutdown()
        for thread in self._threads:
            thread.join(30)
        for response in self._open:
            response.close()

    @property
    def _objects(self) -> str:
        return f"/api/v1/namespaces/{self.fleet.name}/configmaps"

    @property
    def _leases(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{STATES}/leases"

    def unguarded(self) -> list[tuple[int, str]]:
        """Return the writes of objects that happened while nobody held their target's Lease."""
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

    def _follow(self, path: str, kind: str) -> None:
        listed = json.loads(self._get(path).data)
        since = listed["metadata"]["resourceVersion"]
        response = self._get(f"{path}?watch=true&timeoutSeconds=900&resourceVersion={since}", preload=False)
        thread = threading.Thread(target=self._read, args=(response, kind), daemon=True)
        self._open.append(response)
        self._threads.append(thread)
        thread.start()

    def _get(self, path: str, *, preload: bool = True) -> urllib3.BaseHTTPResponse:
        headers = {"Authorization": self.connection.authorization()}
        return self.connection.pool(4).request("GET", self.connection.host + path, headers=headers, preload_content=preload, timeout=900.0)

    def _read(self, response: urllib3.BaseHTTPResponse, kind: str) -> None:
        rest = b""
        with contextlib.suppress(urllib3.exceptions.HTTPError, OSError, ValueError):
            while data := response.read1(1 << 16):
                *whole, rest = (rest + data).split(b"\n")
                for line in whole:
                    self._note(json.loads(line), kind)

    def _note(self, event: dict[str, Any], kind: str) -> None:
        item = event["object"]
        holder = str((item.get("spec") or {}).get("holderIdentity") or "") if kind == "lease" and event["type"] != "DELETED" else ""
        self.events.append((int(item["metadata"]["resourceVersion"]), kind, item["metadata"]["name"], holder))
