"""One connection as the loop keeps it, and how a thread sees it: a request that is whole, and an answer that is collected."""

from __future__ import annotations

import json
import math
import socket
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from handler.web.html_refusal import TYPE, html_refusal
from handler.web.request_reader import RequestReader

AGAIN = 1  # seconds after which a client that was turned away may come again


@dataclass(eq=False, slots=True)
class ClientConnection:
    """`client`: the peer's address, or the one it has connected for; `late`: what is done at the `deadline` (monotonic)."""

    sock: socket.socket
    client: Any
    server: Any
    incoming: RequestReader
    since: float
    late: Callable[[ClientConnection], None]
    deadline: float = math.inf
    held: int = 0
    watched: int = 0
    then: Callable[[ClientConnection], None] = field(init=False)
    unread: int = 0
    answer: memoryview = field(default_factory=lambda: memoryview(b""))
    future: Future[Collected] | None = None


@dataclass(eq=False, slots=True)
class EventStream:
    """One stream of events (`event_streams`). `ends`, `last`: monotonic seconds; `closed`: called once, on the loop, at its end.

    `conn`: None until the loop has the answer of its view; `behind`: bytes of `unsent`, `allowed`: as many as there may be; `sent`, `said`:
    bytes to and from the client; `route`: of its line in the access log, empty: it has none.
    """

    visitor: str
    ends: float
    closed: Callable[[], None]
    allowed: int
    route: str = ""
    conn: ClientConnection | None = None
    unsent: deque[memoryview] = field(default_factory=deque)
    behind: int = 0
    sent: int = 0
    said: int = 0
    last: float = math.inf
    over: bool = False


class Collected:
    """Stands for the socket while an answer is made. `streams`: where its view may open a `stream` (`EventStreams`), its answer then."""

    def __init__(self, streams: Any = None) -> None:
        self.answer = bytearray()
        self.streams = streams
        self.stream: EventStream | None = None

    @property
    def taken(self) -> bool:
        """Whether the view has answered 200; proxies may speak HTTP/1.0."""
        return self.answer.startswith((b"HTTP/1.1 200 ", b"HTTP/1.0 200 "))

    def sendall(self, data: bytes) -> None:
        """Take a part of the answer."""
        self.answer += data

    def send(self, data: bytes) -> int:
        """Take `100 Continue`, which the loop has sent when it was wanted."""
        return len(data)

    def shutdown(self, how: int) -> None:
        """Refuse to end: an answer that broke off isn't sent at all."""
        raise OSError(how)


@dataclass(frozen=True, slots=True)
class Exchange:
    """What gunicorn knows of a connection while it serves a request."""

    client: Any
    server: Any
    sock: Collected


def refusal(status: int, reason: str, code: str = "bad-request", *, page: bool = False) -> bytes:
    """Return the answer to what leads to no thread, as JSON; `page`: as HTML, for a person."""
    said: dict[str, Any] = {"matched": [], "ignored": [], "run": None, "code": code, "error": reason.lower()}
    body = (html_refusal(reason) if page else json.dumps(said)).encode()
    again = f"Retry-After: {AGAIN}\r\n" if status == 503 else ""
    head = f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: {TYPE if page else 'application/json'}\r\n{again}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
