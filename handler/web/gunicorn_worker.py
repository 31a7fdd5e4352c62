"""The worker of our web process: gunicorn's parser and threads, with an event loop of ours in front of them.

Law: a thread gets only a request that is whole, and hands back an answer that is whole. The main thread's loop alone reads and writes
sockets, so a slow client costs a descriptor and the bytes that came (`connection_limits`), and no thread; nor does a stream of events
(`event_streams`). Reads, pages and slow looks have threads of their own (`POOLS`): however slow a cluster is, the others are there for
deliveries.
"""

from __future__ import annotations

import logging
import math
import re
import resource
import selectors
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from gunicorn.http import errors
from gunicorn.workers.gthread import ThreadWorker

from handler.web import access_log
from handler.web.connection import ClientConnection, Collected, EventStream, Exchange, refusal
from handler.web.connection_limits import UNCOUNTED, Bounds, FrontLimits, OpenConnections, Peers
from handler.web.html_refusal import is_page
from handler.web.request_reader import RequestReader

if TYPE_CHECKING:
    from handler.web.event_streams import EventStreams

HEAD_SECONDS = 5.0
BODY_SECONDS = 10.0  # in all: git hosts give up after ten seconds themselves
ANSWER_SECONDS = 10.0  # for the client to take its answer
PATIENCE = 2.0  # seconds that a read waits for one of its threads
LOOK_PATIENCE = 20.0  # the same for what a plan or a render answers, and for what a person decides
LINGER_SECONDS = 1.0
LINGER_BYTES = 64 * 1024
STEP = 64 * 1024  # bytes that are read at once
LOOK_EVERY = 0.5  # seconds between two looks for what is late
AT_ONCE = 64  # connections that are accepted before others are served
LOG_EVERY = 60.0
BODIES = 20  # bodies of the largest size that are held in memory, in all
SPARE = 100  # descriptors that aren't connections
CROWDED = "too-many-requests"
THREADS = 16
READS, READY, PAGES, LOOKS, ACTS, EVENTS = "reads", "ready", "pages", "looks", "acts", "events"
POOLS = {READS: THREADS // 4, READY: 1, "": THREADS - THREADS // 4 - 1, PAGES: 4, LOOKS: 4, ACTS: 2, EVENTS: 2}
"""Threads by what is asked: what the worker is asked, whether it is there, all else; beside these THREADS pages, plans, acts, events."""
_EVENTS = re.compile(r"/ui/targets/[^/]+/(events|logs)")
"""What open pages ask for again and again: of a cluster that hangs, it takes no thread of a plan."""
_ACT = re.compile(r"/ui/targets/[^/]+/(approve|suspend|resume)")
"""What a person decides without a plan: it waits behind none, and while it waits for a record other pages don't."""
_LOOK = re.compile(r"/ui/targets/[^/]+/(?!run$)[^/]+|/api/targets/[^/]+/(gap|orphans)")
"""Paths behind which a plan, a render or a look at a cluster stands."""
_LOG = logging.getLogger("anneal.web")
_STATUS: tuple[tuple[type[Exception], int, str], ...] = (
    (errors.LimitRequestLine, 414, "URI Too Long"),
    (errors.LimitRequestHeaders, 431, "Request Header Fields Too Large"),
    (errors.ExpectationFailed, 417, "Expectation Failed"),
    (errors.ParseException, 400, "Bad Request"),
)


class ServedApplication(Protocol):
    """What the worker asks of its application (gunicorn's `app`)."""

    @property
    def front(self) -> FrontLimits:
        """The limits of the loop; known once the application is made."""

    def idle(self) -> bool:
        """Whether nothing is left in this process that was answered and not yet handed on."""


class DoorWorker(ThreadWorker):
    """Reads requests whole: 5 s for the head, then 10 s for the body; 2 s for a reader's turn; 10 s for the client to take its answer.

    After `max_requests` it ends, but unlike gunicorn's own worker at a chosen moment: without open connections, and with all answered jobs
    handed on. New connections wait in the listener's queue for the next worker, for a fraction of a second.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._enough, self.max_requests = self.max_requests, sys.maxsize
        self._served = cast("ServedApplication", self.app)
        self._held = self._dropped = 0
        self._look, self._log_due = 0.0, -math.inf
        self._streams: EventStreams | None = None

    def init_process(self) -> None:
        """Serve. What is being served at SIGTERM gets its ten seconds, and leaves the outbox its two before gunicorn kills."""
        self.cfg.set("graceful_timeout", int(BODY_SECONDS))
        super().init_process()

    def run(self) -> None:
        """Be the loop, until SIGTERM; the application is made."""
        front = self._served.front
        self._most, self._refused = front.max_body, front.refused
        streams = self._open_streams() if front.streams else 0
        self._crowd, self._peers = OpenConnections[ClientConnection](_bounds(front.max_body, streams)), Peers(front.proxies)
        self._pools = {pool: ThreadPoolExecutor(threads, pool) for pool, threads in POOLS.items() if pool} | {"": self.tpool}
        super().run()

    def _open_streams(self) -> int:
        """Make the place of streams; return how many descriptors they may take: where those are few, most are left to deliveries."""
        from handler.web.event_streams import MOST, EventStreams  # noqa: PLC0415 - in the arbiter it would be memory for nothing

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard // 8)
        self._streams = EventStreams(self._watch, self._try_to_send, self.method_queue.defer, most)
        return most

    # --- reading
    def accept(self, listener: Any) -> None:
        """Accept the waiting connections."""
        for _ in range(AT_ONCE):
            try:
                sock, client = listener.accept()
            except OSError:  # none is left, or it has hung up already
                return
            sock.setblocking(False)
            incoming, now = RequestReader(self.cfg, client, self._most), time.monotonic()
            conn = ClientConnection(sock, client, listener.getsockname(), incoming, now, self._too_slow, now + HEAD_SECONDS)
            self.nr_conns += 1
            self._crowd.add(conn, self._peers.peer(client))
            self._make_room(conn)
            self._read(conn)

    def _read(self, conn: ClientConnection) -> None:
        try:
            data = conn.sock.recv(STEP)
        except BlockingIOError:
            self._watch(conn, selectors.EVENT_READ, self._read)
            return
        except OSError:  # reset, or dropped to make room
            self._close(conn)
            return
        begun = conn.incoming.request is not None
        if not data:
            self._refuse(conn, 400, "Body Ended Too Early") if begun else self._close(conn)
            return
        try:
            whole = conn.incoming.feed(data)
        except Exception as error:  # noqa: BLE001 - one client's bytes may not end the loop
            self._malformed(conn, error)
            return
        self._hold(conn, conn.incoming.size)
        if not begun and conn.incoming.request:
            self._begun(conn, whole=whole)
        if whole:
            self._serve(conn)
            return
        self._watch(conn, selectors.EVENT_READ, self._read)
        self._make_room(conn)

    def _begun(self, conn: ClientConnection, *, whole: bool) -> None:
        request = conn.incoming.request
        conn.deadline = time.monotonic() + BODY_SECONDS
        if behind := self._peers.client(conn.client, request.headers):
            conn.client = (behind[0], 0)
            self._crowd.add(conn, behind[1])
        if not whole and request.version >= (1, 1) and any(name == "EXPECT" for name, _ in request.headers):
            self._try_to_send(conn, b"HTTP/1.1 100 Continue\r\n\r\n")

    # --- serving
    def _serve(self, conn: ClientConnection) -> None:
        self._watch(conn, 0, self._read)
        self._crowd.whole(conn)
        self._make_room(conn)
        pool = _pool(conn.incoming.request.path)
        conn.deadline, conn.late = time.monotonic() + _patience(pool), self._withdraw
        future = conn.future = self._pools[pool].submit(self._done, conn)
        future.add_done_callback(lambda done: self.method_queue.defer(self._answered, conn, done))

    def _done(self, conn: ClientConnection) -> Collected:
        """Answer a request; on a thread."""
        answer, request = Collected(self._streams), conn.incoming.taken()
        exchange = Exchange(conn.client, conn.server, answer)
        try:
            self.handle_request(request, cast("Any", exchange))
        except (Exception, SystemExit):  # noqa: BLE001 - our mistake, or gunicorn's: the loop goes on
            _LOG.exception("request failed")
            answer.answer = bytearray(refusal(500, "Internal Server Error", "internal", page=self._asks_page(conn)))
        finally:
            request.body.close()  # Werkzeug's request is part of a circle, and would keep megabytes until a full collection
        return answer

    def _withdraw(self, conn: ClientConnection) -> None:
        """Turn away a reader that has found no thread in time; one that has goes on."""
        conn.deadline = math.inf
        if conn.future:
            conn.future.cancel()

    def _answered(self, conn: ClientConnection, done: Future[Collected]) -> None:
        conn.future = None
        if done.cancelled():
            self._refuse(conn, 503, "Too Many Reads At Once", CROWDED)
            return
        answer = done.result()
        if self._streams and answer.stream:
            if answer.taken:
                self._stream(conn, answer.stream, self._streams)
                return
            self._streams.end(answer.stream)
        self._answer(conn, bytes(answer.answer))

    def _stream(self, conn: ClientConnection, stream: EventStream, streams: EventStreams) -> None:
        """Hand a connection over to the streams: it counts no more, neither in the crowd nor when the process ends."""
        self._hold(conn, 0)
        self._crowd.remove(conn)
        self.nr_conns -= 1
        streams.adopt(conn, stream)

    # --- answering
    def _answer(self, conn: ClientConnection, data: bytes) -> None:
        self._crowd.whole(conn)
        self._hold(conn, len(data))
        conn.answer = memoryview(data)
        conn.deadline, conn.late = time.monotonic() + ANSWER_SECONDS, self._close
        self._write(conn)

    def _write(self, conn: ClientConnection) -> None:
        sent = self._try_to_send(conn, conn.answer)
        conn.answer = conn.answer[sent:]
        if conn.answer:
            self._watch(conn, selectors.EVENT_WRITE, self._write)
        else:
            self._linger(conn)

    def _linger(self, conn: ClientConnection) -> None:
        """Wait until the client has closed, so that its answer isn't lost in a reset (RFC 9112, 9.6); incomplete until then."""
        self._hold(conn, 0)
        self._crowd.add(conn, UNCOUNTED)
        conn.deadline, conn.unread = time.monotonic() + LINGER_SECONDS, LINGER_BYTES
        try:
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(conn)
        else:
            self._watch(conn, selectors.EVENT_READ, self._discard)

    def _discard(self, conn: ClientConnection) -> None:
        try:
            data = conn.sock.recv(STEP)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        conn.unread -= len(data)
        if not data or conn.unread <= 0:
            self._close(conn)

    def _too_slow(self, conn: ClientConnection) -> None:
        if conn.incoming.size or conn.incoming.request:
            self._refuse(conn, 408, "Request Timeout")
        else:
            self._close(conn)

    def _malformed(self, conn: ClientConnection, error: Exception) -> None:
        status, reason = next(
            ((status, reason) for kind, status, reason in _STATUS if isinstance(error, kind)), (500, "Internal Server Error")
        )
        if status == 500:
            _LOG.error("request failed", exc_info=error)
        self._refuse(conn, status, reason)

    def _refuse(self, conn: ClientConnection, status: int, reason: str, code: str = "bad-request") -> None:
        self._answer(conn, self._count(conn, status, reason, code))

    def _asks_page(self, conn: ClientConnection) -> bool:
        return self._streams is not None and conn.incoming.request is not None and is_page(conn.incoming.request.path)

    def _count(self, conn: ClientConnection, status: int, reason: str, code: str) -> bytes:
        data = refusal(status, reason, code, page=self._asks_page(conn))
        self._refused(status, time.monotonic() - conn.since)
        if self.cfg.accesslog:
            access_log.log("", access_log.OTHER, status, len(data), 0.0, conn.client[0] if isinstance(conn.client, tuple) else "")
        return data

    # --- bounds
    def _make_room(self, newest: ClientConnection) -> None:
        while (each := self._crowd.surplus(newest, self._held)) is not None:
            if not each.unread:  # else it has its answer, and only lingers
                self._dropped += 1
                self._try_to_send(each, self._count(each, 503, "Too Many Connections", CROWDED))
            self._close(each)

    def _hold(self, conn: ClientConnection, size: int) -> None:
        self._held += size - conn.held
        conn.held = size

    def murder_pending(self) -> None:
        """Drop late connections, and end after enough requests; the main loop calls it at least once a second."""
        super().murder_pending()
        now = time.monotonic()
        if now >= self._look:
            self._look = now + LOOK_EVERY
            for conn in [conn for conn in self._crowd if now > conn.deadline]:
                conn.late(conn)
        if self._dropped and now >= self._log_due:
            fields = {"dropped": self._dropped}
            _LOG.warning("the door is full: requests that weren't whole gave way to newer ones", extra={"fields": fields})
            self._dropped, self._log_due = 0, now + LOG_EVERY
        if self.alive and self.nr >= self._enough and self._may_end():
            _LOG.info("the web process has served enough and is replaced", extra={"fields": {"requests": self.nr}})
            self.alive = False
        if self._streams:
            self._streams.look(now) if self.alive else self._streams.close()

    def _may_end(self) -> bool:
        """Whether the worker can end without losing anything. On the main thread, which alone accepts: nothing comes between."""
        # Clients that never all leave are waited for until twice as many requests were served; they are then served to their end.
        return (self.nr_conns == 0 or self.nr >= 2 * self._enough) and self._served.idle()

    # --- sockets
    def _watch(self, conn: ClientConnection, events: int, then: Callable[[ClientConnection], None]) -> None:
        """Call `then` at these events; 0: at none."""
        conn.then = then
        if events != conn.watched:
            if conn.watched:
                self.poller.unregister(conn.sock)
            if events:
                self.poller.register(conn.sock, events, lambda _sock: conn.then(conn) if conn.watched else None)
            conn.watched = events

    def _try_to_send(self, conn: ClientConnection, data: bytes | memoryview) -> int:
        """Return how much could be sent at once; all of it, where the client is gone."""
        try:
            return conn.sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)

    def _close(self, conn: ClientConnection) -> None:
        if conn.sock.fileno() < 0:
            return
        self._watch(conn, 0, self._close)
        self._hold(conn, 0)
        self._crowd.remove(conn)
        self.nr_conns -= 1
        conn.sock.close()


def _bounds(max_body: int, streams: int) -> Bounds:
    """Return what may stand at the door beside the streams; as many descriptors as all take are asked of the system."""
    bounds, beside = Bounds(held=BODIES * max_body), SPARE + streams
    wanted = bounds.connections + beside
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now != resource.RLIM_INFINITY and now < wanted:
        now = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, most))
        bounds = replace(bounds, connections=max(now - beside, 1))
    return bounds


def _pool(path: str) -> str:
    if path == "/readyz":
        return READY
    if _EVENTS.fullmatch(path):
        return EVENTS
    if _ACT.fullmatch(path):
        return ACTS
    if _LOOK.fullmatch(path):
        return LOOKS
    if is_page(path):
        return PAGES
    return READS if path == "/metrics" or path.startswith("/api/") else ""


def _patience(pool: str) -> float:
    """Return how many seconds a request waits for a thread; a delivery as long as it takes."""
    return {"": math.inf, LOOKS: LOOK_PATIENCE, ACTS: LOOK_PATIENCE}.get(pool, PATIENCE)
