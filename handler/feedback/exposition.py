"""Prometheus' own listener (`metrics.bind`): GET /metrics and nothing else, without a token, so it belongs on a private address."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
AT_ONCE = 4  # scrapes at once; further connections are closed
SLOWEST = 5.0  # seconds that a client may be silent
LONGEST = 15.0  # seconds that a client may take: one that drips bytes would keep its thread for ever


class Exposition:
    """Serves a socket that the supervisor has opened, in a thread of the web process."""

    def __init__(self, listener: socket.socket, text: Callable[[], str]) -> None:
        self._server = _Server(listener, text)

    def start(self) -> None:
        """Answer scrapes."""
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket, text: Callable[[], str]) -> None:
        super().__init__(listener.getsockname()[:2], _Scrape, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.text = text
        self._free = threading.BoundedSemaphore(AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve on a thread, if one is free."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        cut = threading.Timer(LONGEST, _hang_up, (request,))
        cut.daemon = True
        cut.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            cut.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news."""


class _Scrape(BaseHTTPRequestHandler):
    server: _Server
    timeout = SLOWEST
    server_version = "anneal"
    sys_version = ""
    error_message_format = "%(code)d %(message)s\n"
    error_content_type = "text/plain"

    def do_GET(self) -> None:
        """Answer /metrics."""
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404)
            return
        body = self.server.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's signature
        """Log nothing of an ordinary scrape."""
