"""A host whose answers a test writes down: HTTP on loopback, one answer for each request, the last one for all that follow."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.rooms.source.http_server import Listening

ENDLESS = 1 << 30


@dataclass(frozen=True)
class Canned:
    """One answer. `drip`: seconds between its bytes; `declared`: the length that it names, when that is another; `cut`: hang up at once."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    drip: float = 0.0
    declared: int | None = None
    cut: bool = False

    @classmethod
    def of(cls, document: Any, status: int = 200, **headers: str) -> Canned:
        """Make the answer of a document; names of headers are written with underscores."""
        return cls(status, json.dumps(document).encode(), {name.replace("_", "-"): value for name, value in headers.items()})


@dataclass(frozen=True)
class Came:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class CannedHost(Listening):
    """The host. `came`: its requests, in order; `connections`: how many were opened."""

    def __init__(self, *answers: Canned) -> None:
        self.answers = list(answers) or [Canned()]
        self.came: list[Came] = []
        self.connections = 0
        self.over = threading.Event()

    def __enter__(self) -> Self:
        server = _Server(("127.0.0.1", 0), _Handler)
        server.canned = self
        self._listen(server)
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        super().__exit__()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    def next(self) -> Canned:
        """Return the next answer."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    canned: CannedHost

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients hang up on what is too long."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.server.canned.connections += 1

    def _respond(self) -> None:
        host = self.server.canned
        headers = {name.lower(): value for name, value in self.headers.items()}
        host.came.append(Came(self.command, self.path, headers, self.rfile.read(int(headers.get("content-length") or 0))))
        answer = host.next()
        if answer.cut:
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        length = len(answer.body) if answer.declared is None else answer.declared
        for name, value in {"Content-Type": "application/json", "Content-Length": str(length), **answer.headers}.items():
            if value:
                self.send_header(name, value)
        self.close_connection = not answer.headers.get("Content-Length", "set") or length != len(answer.body)
        self.end_headers()
        self._write(answer)

    def _write(self, answer: Canned) -> None:
        if not answer.drip:
            self.wfile.write(answer.body)
            return
        for byte in answer.body:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if self.server.canned.over.wait(answer.drip):
                return

    do_GET = do_POST = do_PUT = do_PATCH = _respond  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        pass
