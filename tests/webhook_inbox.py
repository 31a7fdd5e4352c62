"""An HTTP server on loopback that takes deliveries of webhooks and keeps them, raw, in the order in which they come."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.patience import PATIENCE


@dataclass(frozen=True)
class Delivery:
    """One request: its headers as they were spelled, its body byte for byte."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class Inbox:
    """Answers each POST with `status`. `deliveries`: what has come."""

    def __init__(self, status: int = 202) -> None:
        self.status = status
        self.deliveries: list[Delivery] = []
        self._come = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _Taker)
        self._server.inbox = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def wait(self, wanted: Callable[[Delivery], object], after: int = 0) -> Delivery:
        """Return the first delivery that is wanted, of those that came after so many others. Raises TimeoutError."""
        with self._come:
            found = self._come.wait_for(lambda: next((each for each in self.deliveries[after:] if wanted(each)), None), PATIENCE)
        if found:
            return found
        raise TimeoutError(f"none of {len(self.deliveries) - after} deliveries is wanted, for {PATIENCE:g} s")

    def take(self, delivery: Delivery) -> None:
        with self._come:
            self.deliveries.append(delivery)
            self._come.notify_all()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    inbox: Inbox


class _Taker(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.inbox.take(Delivery(self.path, dict(self.headers.items()), body))
        self.send_response(self.server.inbox.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
