"""An HTTP proxy on loopback (RFC 9110, 9.3.6 and RFC 9112, 3.2.2): tunnels by CONNECT, forwards plain requests, may want credentials."""

from __future__ import annotations

import base64
import http.client
import socket
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import wait
from typing import Self
from urllib.parse import urlsplit

from tests.patience import PATIENCE
from tests.rooms.source.http_server import Listening

_OWN = ("proxy-authorization", "proxy-connection", "connection", "transfer-encoding")


@dataclass
class Proxy(Listening):
    """The proxy. `password`: of the user `anneal`; empty: any user. `seen`: method, target, headers. `drip`: CONNECT never ends."""

    password: str = ""
    drip: bool = False
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self._listen(self._server)
        return self

    def url(self, credentials: str = "") -> str:
        """Return its URL, with credentials as they stand in an environment variable."""
        return f"http://{credentials}{'@' if credentials else ''}127.0.0.1:{self.port}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: Proxy

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients and hosts hang up as they like."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_CONNECT(self) -> None:
        if not self._let_in():
            return
        while self.server.proxy.drip:
            self.wfile.write(b"H" if self.server.proxy.drip else b"")
            time.sleep(0.05)
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as far:
            self.send_response_only(200)
            self.end_headers()
            _join(self.connection, far)
        self.close_connection = True

    def do_GET(self) -> None:
        self._forward(b"")

    def do_POST(self) -> None:
        self._forward(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        pass

    def _let_in(self) -> bool:
        proxy = self.server.proxy
        proxy.seen.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}))
        wanted = "Basic " + base64.b64encode(f"anneal:{proxy.password}".encode()).decode()
        if not proxy.password or self.headers.get("Proxy-Authorization") == wanted:
            return True
        self.send_response_only(407)
        self.send_header("Proxy-Authenticate", 'Basic realm="proxy"')
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def _forward(self, body: bytes) -> None:
        if not self._let_in():
            return
        parts = urlsplit(self.path)
        far = http.client.HTTPConnection(parts.hostname or "", parts.port or 80)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
        far.request(self.command, f"{parts.path}?{parts.query}" if parts.query else parts.path, body or None, headers)
        answer = far.getresponse()
        content = answer.read()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in (*_OWN, "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        far.close()


def _join(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until one side ends."""
    while True:
        ready = wait([one, other], PATIENCE)
        if not ready:
            return
        for side, far in ((one, other), (other, one)):
            if side in ready:
                data = side.recv(65536)
                if not data:
                    return
                far.sendall(data)
