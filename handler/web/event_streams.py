"""Streams of server-sent events: answers that the loop keeps open, and that no thread waits for.

    a view, on its thread: open   ->   the loop: adopt, its own head   <-   any thread: publish

Law: the loop alone touches their sockets. They take neither the room of deliveries (`connection_limits`) nor the time of an end: they are
ended with the process at once, and browsers come again by themselves. A reader that falls behind is dropped, and holds up no other.
"""

from __future__ import annotations

import random
import selectors
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from email.utils import formatdate
from typing import Any, Protocol

from handler.web import access_log
from handler.web.connection import ClientConnection, Collected, EventStream
from handler.web.responses import HEADERS

MOST, OF_VISITOR = 200, 20
"""Streams in all, and of one visitor."""
UNSENT = 256 * 1024
"""Bytes that a reader may be behind, beside what it was sent on opening."""
HEARTBEAT = 15.0  # seconds without an event: proxies close what is silent for a minute
LIFE = 600.0
"""Seconds after which a browser has to come again, at most: then it is looked whether it may still see what it sees."""
AGAIN = 2000  # milliseconds until it does, at least; at most twice as many, so that not all come at once
SAID = 64 * 1024  # bytes that a client may send after its request
STEP = 16 * 1024
_SPREAD = 0.8  # of the longest life: those that were opened together don't end together
_BEAT = b":\n\n"


class Send(Protocol):
    """How the loop writes."""

    def __call__(self, conn: ClientConnection, data: bytes | memoryview) -> int:
        """Send what can be sent at once; return how much that was."""


class Watch(Protocol):
    """How the loop watches a socket."""

    def __call__(self, conn: ClientConnection, events: int, then: Callable[[ClientConnection], None]) -> None:
        """Call `then` at these events; 0: at none."""


class EventStreams:
    """The streams of a process. `watch` and `send`: the loop's, called by it alone; `defer`: has it call something, from any thread."""

    def __init__(self, watch: Watch, send: Send, defer: Callable[..., None], most: int = MOST) -> None:
        self._watch, self._send, self._defer, self._most = watch, send, defer, most
        self._lock = threading.Lock()
        self._open, self._closed = 0, False
        self._visitors: Counter[str] = Counter()
        self._adopted: dict[ClientConnection, EventStream] = {}

    # --- any thread
    def open(self, environ: Mapping[str, Any], visitor: str, until: float, closed: Callable[[], None]) -> EventStream | None:
        """Make the answer to this request a stream, if its view answers 200; None: there is no room.

        `until`: seconds since the epoch at which it ends, if not earlier; `closed`: called on the loop at its end, whatever that is.
        """
        answer: Collected = environ["gunicorn.socket"]
        life = min(until - time.time(), LIFE * random.uniform(_SPREAD, 1.0))  # noqa: S311 - no secret
        if life <= 0 or answer.stream:
            return None
        with self._lock:
            if self._closed or self._open >= self._most or self._visitors[visitor] >= OF_VISITOR:
                return None
            self._open += 1
            self._visitors[visitor] += 1
        answer.stream = EventStream(visitor, time.monotonic() + life, closed, UNSENT)
        return answer.stream

    def publish(self, batch: Iterable[tuple[EventStream, bytes]]) -> None:
        """Send events to streams, each in the order of the calls; those that have ended get none. The bytes may be shared."""
        if not self._closed:  # the loop's pipe may be closed, and its number another file's
            self._defer(self._published, tuple(batch))

    # --- the loop
    def adopt(self, conn: ClientConnection, stream: EventStream) -> None:
        """Answer by a stream; the connection is ours from now on."""
        stream.conn, stream.last = conn, time.monotonic()
        self._adopted[conn] = stream
        stream.unsent.appendleft(memoryview(_head()))
        self._flush(stream)

    def end(self, stream: EventStream) -> None:
        """End a stream, also one that was never adopted."""
        if stream.over:
            return
        stream.over = True
        stream.unsent.clear()
        with self._lock:
            self._open -= 1
            self._visitors[stream.visitor] -= 1
            if not self._visitors[stream.visitor]:
                del self._visitors[stream.visitor]
        if conn := stream.conn:
            del self._adopted[conn]
            self._watch(conn, 0, self._ready)
            conn.sock.close()
            _log(stream, conn)
        stream.closed()

    def look(self, now: float) -> None:
        """End what has lived, and send heartbeats."""
        for stream in list(self._adopted.values()):
            if now >= stream.ends:
                self.end(stream)
            elif now >= stream.last + HEARTBEAT:
                self._put(stream, _BEAT)

    def close(self) -> None:
        """End all streams, and open no more."""
        self._closed = True
        for stream in list(self._adopted.values()):
            self.end(stream)

    def _published(self, batch: Iterable[tuple[EventStream, bytes]]) -> None:
        for stream, data in batch:
            if not stream.over:
                self._put(stream, data)

    def _put(self, stream: EventStream, data: bytes) -> None:
        if stream.behind > stream.allowed:
            self.end(stream)
            return
        stream.unsent.append(memoryview(data))
        stream.behind += len(data)
        if stream.conn:
            self._flush(stream)
        else:
            stream.allowed += len(data)

    def _flush(self, stream: EventStream) -> None:
        conn, unsent = stream.conn, stream.unsent
        assert conn is not None  # noqa: S101 - adopted
        stream.last = time.monotonic()
        while unsent:
            data = unsent.popleft()
            sent = self._send(conn, data)
            stream.sent += sent
            stream.behind = max(stream.behind - sent, 0)
            if sent < len(data):
                unsent.appendleft(data[sent:])
                break
        self._watch(conn, selectors.EVENT_READ | (selectors.EVENT_WRITE if unsent else 0), self._ready)

    def _ready(self, conn: ClientConnection) -> None:
        stream = self._adopted[conn]
        try:
            said = len(conn.sock.recv(STEP)) or SAID
        except BlockingIOError:
            said = 0
        except OSError:  # reset
            said = SAID
        stream.said += said
        if stream.said >= SAID:
            self.end(stream)
        elif stream.unsent:
            self._flush(stream)


def _head() -> bytes:
    more = "".join(f"{name}: {value}\r\n" for name, value in {**HEADERS, "X-Accel-Buffering": "no"}.items())  # nginx passes on what it gets
    again = AGAIN + random.randrange(AGAIN)  # noqa: S311 - no secret
    head = f"HTTP/1.1 200 OK\r\nDate: {formatdate(usegmt=True)}\r\nConnection: close\r\nContent-Type: text/event-stream\r\n"
    return f"{head}{more}\r\nretry: {again}\n\n".encode()


def _log(stream: EventStream, conn: ClientConnection) -> None:
    if stream.route:
        remote = conn.client[0] if isinstance(conn.client, tuple) else ""
        access_log.log("GET", stream.route, 200, stream.sent, time.monotonic() - conn.since, remote)
