"""The seam: what `handler.cluster.connect.ClusterConnection` is to an `Api`, with the server in memory behind its pool."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import urllib3

from handler.cluster.connect import ClusterConnection
from handler.cluster.kubeconfig import Loaded
from tests.fakes.apiserver.server import ApiServer, Asked, read

HOST = "https://in-memory.example.com"


@dataclass(frozen=True)
class Call:
    """A request on its way. `silence`: seconds without an answer after which its sender gives up."""

    asked: Asked
    silence: float

    @property
    def writes(self) -> bool:
        return self.asked.method != "GET" and not self.asked.dry


Reply = tuple[int, dict[str, Any], Mapping[str, str]]
"""Status, body and more headers."""
Way = Callable[[Call, Callable[[], Reply]], Reply]
"""What happens to a call on its way: it may be done (the second argument) once, never, or done and not answered (it raises)."""


def straight(call: Call, do: Callable[[], Reply]) -> Reply:
    """Nothing happens on the way."""
    return do()


class FakeConnection(ClusterConnection):
    """The way to a server in memory; `way` sees every call."""

    def __init__(self, server: ApiServer, way: Way = straight) -> None:
        super().__init__(lambda: Loaded(HOST, {}), "memory")
        self._pool = FakePool(server, way)

    def pool(self, size: int) -> urllib3.PoolManager:
        return self._pool  # type: ignore[return-value]  # the one method of it that is called


class FakePool:
    """As much of urllib3's PoolManager as is used."""

    def __init__(self, server: ApiServer, way: Way) -> None:
        self._server = server
        self._way = way

    def request(self, method: str, url: str, *, body: bytes | None, headers: Mapping[str, str], timeout: urllib3.Timeout, **_: Any) -> Any:
        parts = urlsplit(url)
        asked = read(method, unquote(parts.path), dict(parse_qsl(parts.query)), body, headers)
        silence = timeout.read_timeout

        def do() -> Reply:
            status, found = self._server.answer(asked)
            return status, found, {}

        status, found, more = self._way(Call(asked, silence if isinstance(silence, int | float) else 60.0), do)
        data = json.dumps(found).encode()
        sent = {"Content-Type": "application/json", "Date": self._server.date(), "Content-Length": str(len(data)), **more}
        return urllib3.HTTPResponse(io.BytesIO(data), headers=sent, status=status, preload_content=False)
