"""A real API server in the place of the one in memory. Requests come one at a time, so what they changed can be read after each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from handler.cluster.connect import ClusterConnection
from handler.cluster.errors import place_of
from handler.model.names import Identity
from tests.fakes.apiserver import ApiServer
from tests.fakes.apiserver.kinds import BY_PLACE
from tests.fakes.apiserver.server import Asked
from tests.fakes.apiserver.store import Body, Store, Stored
from tests.model.conductor import path_of
from tests.model.targets import NAMESPACES, STATES


class Mirror(Store):
    """What lives on a real server, as far as it was written through here."""

    def note(self, identity: Identity, stored: Stored | None) -> None:
        """Keep what an object is now."""
        before = self.get(identity)
        if (before and before.version) != (stored and stored.version):
            self._commit(identity, stored, self.revision + 1)


class RealServer(ApiServer):
    """The way to a real API server, with the same face."""

    def __init__(self, connection: ClusterConnection, spaces: Sequence[str] = (*NAMESPACES, STATES)) -> None:
        self.mirror = self.store = Mirror(lambda: "")
        self._connection = connection
        self._date = ""
        self._clear(spaces)

    def answer(self, asked: Asked) -> tuple[int, Body]:
        status, body = self._sent(asked)
        if asked.method != "GET" and not asked.dry and status < 300:
            self._look_at(asked)
        return status, body

    def date(self) -> str:
        return self._date

    def _sent(self, asked: Asked) -> tuple[int, Body]:
        url = self._connection.host + quote(asked.path, safe="/:") + ("?" + urlencode(asked.query) if asked.query else "")
        headers = {"Accept": asked.accept or "application/json", "Content-Type": asked.content_type or "application/json"}
        if self._connection.authorization():
            headers["Authorization"] = self._connection.authorization()
        body = None if asked.body is None else json.dumps(asked.body).encode()
        response = self._connection.pool(4).request(asked.method, url, body=body, headers=headers, retries=False)
        self._date = response.headers["Date"]
        return response.status, _parsed(response.data)

    def _look_at(self, asked: Asked) -> None:
        """Read what was written."""
        place = place_of(asked.path)
        row = BY_PLACE[place.group, "v1", place.resource]
        name = place.name or asked.body["metadata"]["name"]
        status, body = self._sent(Asked("GET", row.resource.path(place.namespace, name), {}, None, "", ""))
        stored = Stored(row, body) if status == 200 else None
        self.mirror.note(Identity(place.group, row.resource.kind, place.namespace, name), stored)

    def _clear(self, spaces: Sequence[str]) -> None:
        """Leave nothing of what was here before."""
        leases = [f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases" for namespace in spaces]
        paths = [path_of(kind, namespace) for namespace in spaces for kind in ("ConfigMap", "Secret", "Role")]
        for path in (*paths, *leases):
            self._sent(Asked("DELETE", path, {}, None, "", ""))


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return {}
