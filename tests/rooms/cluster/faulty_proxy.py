"""A proxy in front of the real API server that misbehaves as scripted: refusals, resets, halves of answers, cut watches."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from handler.cluster.connect import ClusterConnection

_KUBECONFIG = (
    "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: '{url}'}}}}], "
    "users: [{{name: u, user: {{token: unused-by-the-proxy}}}}], contexts: [{{name: c, context: {{cluster: c, user: u}}}}]}}"
)

Trick = Callable[["Handler"], bool]
"""What is done to a request; True when it still has to be forwarded."""


def refuse(status: int, retry_after: str = "") -> Trick:
    """Answer with a status of our own, as a busy API server does."""

    def trick(handler: Handler) -> bool:
        handler.answer(status, {"Retry-After": retry_after} if retry_after else {}, b'{"kind":"Status","message":"busy"}')
        return False

    return trick


def reset_before(handler: Handler) -> bool:
    """Break the connection before the server sees the request."""
    handler.reset()
    return False


def reset_after(handler: Handler) -> bool:
    """Let the server do it, then break the connection without an answer."""
    handler.forward(deaf=True)
    handler.reset()
    return False


def half(handler: Handler) -> bool:
    """Break the connection in the middle of the answer's body."""
    handler.forward(cut=True)
    return False


@dataclass
class Wire:
    """A running proxy. `tricks` are used up one per request that `only` matches; `seen` is each request's method and path."""

    connection: ClusterConnection
    tricks: list[Trick] = field(default_factory=list)
    only: Callable[[str, str], bool] = lambda method, path: True
    seen: list[tuple[str, str]] = field(default_factory=list)
    open: list[socket.socket] = field(default_factory=list)
    under_way: int = 0
    """Requests but for GETs that the server hasn't answered yet; the client that sent one may be gone."""
    life: int = 0
    """Of connections made in an earlier life nothing more is forwarded."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        wire = self

        class Bound(Handler):
            proxy = wire

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128  # a client beyond the queue's end would try again a second later

        self.server = Server(("127.0.0.1", 0), Bound)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig that leads here; return its file."""
        path.write_text(_KUBECONFIG.format(url=self.url))
        return path

    def trick(self, method: str, path: str) -> Trick | None:
        """Take the trick for a request, if one is meant for it."""
        with self.lock:
            return self.tricks.pop(0) if self.tricks and self.only(method, path) else None

    def cut(self) -> int:
        """Break every connection on which a watch runs, and say how many those were."""
        cut, self.open = self.open, []
        for sock in cut:
            _break(sock)
        return len(cut)

    def close(self) -> None:
        self.cut()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Handler(BaseHTTPRequestHandler):
    """One connection to the proxy."""

    proxy: Wire
    protocol_version = "HTTP/1.1"
    last: tuple[int, dict[str, str], bytes] | None = None
    """What the server answered last on this connection."""

    def setup(self) -> None:
        self.life = self.proxy.life
        super().setup()

    def _any(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        if self.life != self.proxy.life:
            self.reset()
            return
        self.proxy.seen.append((self.command, self.path))
        trick = self.proxy.trick(self.command, self.path)
        if trick is None or trick(self):
            self.forward()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815 - the base class calls them so

    def forward(self, *, deaf: bool = False, cut: bool = False) -> None:
        """Pass the request to the real server, and its answer back: all of it, none (`deaf`) or half (`cut`)."""
        connection = self.proxy.connection
        headers = {key: value for key, value in self.headers.items() if key.lower() not in {"host", "authorization", "content-length"}}
        if connection.authorization():
            headers["Authorization"] = connection.authorization()
        watch = "watch=true" in self.path
        with self._noted():
            response = connection.pool(32).request(
                self.command, connection.host + self.path, body=self.body or None, headers=headers, retries=False, preload_content=False
            )
        if watch and response.status == 200:
            self._stream(response)
            return
        data = response.read()
        if deaf:
            return
        kept = {key: value for key, value in response.headers.items() if key.lower() in {"content-type", "date", "retry-after", "audit-id"}}
        if cut:
            self.start(response.status, kept | {"Content-Length": str(len(data))})
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.reset()
            return
        self.last = response.status, kept, data
        self.answer(*self.last)

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        """Count what isn't a GET as under way."""
        counts = self.command != "GET"
        with self.proxy.lock:
            self.proxy.under_way += counts
        try:
            yield
        finally:
            with self.proxy.lock:
                self.proxy.under_way -= counts

    def _stream(self, response: Any) -> None:
        self.start(200, {"Content-Type": "application/json", "Connection": "close"})
        self.close_connection = True
        self.proxy.open.append(self.connection)
        try:
            while data := response.read1(65536):
                self.wfile.write(data)
                self.wfile.flush()
        except (OSError, ValueError):
            pass
        finally:
            response.close()

    def start(self, status: int, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()

    def answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.start(status, headers | {"Content-Length": str(len(data))})
        self.wfile.write(data)

    def reset(self) -> None:
        self.close_connection = True
        _break(self.connection)

    def finish(self) -> None:
        try:
            super().finish()
        except (OSError, ValueError):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        return


def _break(sock: socket.socket) -> None:
    """Close with a reset, not with a polite end."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
