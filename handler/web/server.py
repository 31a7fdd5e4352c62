"""Gunicorn as we run it: its thread worker, with a deadline for each request, and JSON instead of its HTML pages.

The stock worker reads requests on blocking sockets without a limit of time, so a handful of clients that send one byte a second
would occupy every thread.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Mapping, MutableMapping
from datetime import timedelta
from typing import Any, Protocol, cast

from gunicorn import util
from gunicorn.glogging import Logger
from gunicorn.http import errors
from gunicorn.workers.gthread import TConn, ThreadWorker

from handler.web import access
from handler.web.defaults import MAX_REQUESTS

HEADER_SECONDS = 5.0
REQUEST_SECONDS = 10.0
"""Body and answer together: git hosts give up after ten seconds themselves, so who needs longer isn't one."""
STOP_SECONDS = 15
"""From SIGTERM to the end, killed if need be: what is being served, then the outbox. The supervisor waits five more."""
IN_MEMORY = "/dev/shm"  # noqa: S108 - not a file of a known name: gunicorn makes a new one there and unlinks it
LINGER_SECONDS = 1.0
LINGER_BYTES = 64 * 1024
_LOG = logging.getLogger("anneal.web")
_STATUS: tuple[tuple[type[Exception], int, str], ...] = (
    (errors.LimitRequestLine, 414, "URI Too Long"),
    (errors.LimitRequestHeaders, 431, "Request Header Fields Too Large"),
    (errors.ExpectationFailed, 417, "Expectation Failed"),
    (errors.ParseException, 400, "Bad Request"),
)

SETTINGS: dict[str, Any] = {
    "workers": 1,  # one process: its outbox coalesces, its memory is small
    "worker_class": "handler.web.server.DoorWorker",
    "threads": 16,
    "timeout": 60,  # of the process's heartbeat; requests have their own deadlines
    "graceful_timeout": STOP_SECONDS,
    "keepalive": 0,  # one request a connection: nothing idle to hold, nothing unread to misread as a next request
    "limit_request_line": 2048,
    "limit_request_fields": 64,
    "limit_request_field_size": 8190,
    "forwarder_headers": "",  # a client's SCRIPT_NAME would move the path, past what a proxy in front publishes
    "forwarded_allow_ips": "",  # nothing is believed of a proxy, not even on this machine
    "logger_class": "handler.web.server.DoorLogger",
    "accesslog": None,  # each delivery and replay has a line of its own; `anneal serve --access-log`
    "control_socket_disable": True,
}


def settings(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return gunicorn's settings. `environ`: ANNEAL_LISTEN, ANNEAL_ACCESS_LOG, ANNEAL_MAX_REQUESTS, as the supervisor has set them.

    The heartbeat is a file's time stamp: on a disk that hangs it would stop, and a healthy process be killed, so it is kept in memory
    where the system has such a place.
    """
    most = int(environ.get("ANNEAL_MAX_REQUESTS") or MAX_REQUESTS)
    return SETTINGS | {
        "bind": f"fd://{environ['ANNEAL_LISTEN']}",
        "accesslog": "-" if environ.get("ANNEAL_ACCESS_LOG") else None,
        "max_requests": most,
        "max_requests_jitter": most // 10,  # replicas behind one balancer don't all restart at once
        "worker_tmp_dir": IN_MEMORY if os.access(IN_MEMORY, os.W_OK | os.X_OK) else None,
    }


class Served(Protocol):
    """What the worker asks of its application (gunicorn's `app`)."""

    def idle(self) -> bool:
        """Whether nothing is left in this process that was answered and not yet handed on."""


class DoorLogger(Logger):
    """Gunicorn's messages, through the handlers of `handler.log`."""

    def setup(self, cfg: Any) -> None:
        """Attach no handlers of its own."""
        super().setup(cfg)
        for log in (self.error_log, self.access_log):
            log.handlers[:] = []
        self.error_log.propagate = True
        self.error_log.setLevel(logging.WARNING)

    def access(self, resp: Any, req: Any, environ: MutableMapping[str, Any], request_time: timedelta) -> None:  # noqa: ARG002 - gunicorn's signature
        """Log a request that was served, if that is wanted."""
        if self.cfg.accesslog and resp.status:
            route, status = environ.get(access.ROUTE, access.OTHER), int(str(resp.status).split()[0])
            remote = environ.get("REMOTE_ADDR", "")
            access.tell(environ["REQUEST_METHOD"], route, status, resp.sent, request_time.total_seconds(), remote)


class DoorWorker(ThreadWorker):
    """Cuts off who takes too long: 5 s for the headers, then 10 s for body and answer together.

    After `max_requests` it ends, but unlike gunicorn's own it chooses the moment: when nobody is connected and nothing that was answered
    waits to be handed on. Who connects meanwhile waits in the listener's queue for the next one, for a fraction of a second.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadlines: dict[TConn, float] = {}
        self._enough, self.max_requests = self.max_requests, sys.maxsize
        self._served = cast("Served", self.app)

    def init_process(self) -> None:
        """Serve. What is being served at SIGTERM gets its ten seconds, and leaves the outbox its two before gunicorn kills."""
        self.cfg.set("graceful_timeout", int(REQUEST_SECONDS))
        super().init_process()

    def handle(self, conn: TConn) -> Any:
        """Serve a connection, from its first byte, on a pool thread."""
        self._deadlines[conn] = time.monotonic() + HEADER_SECONDS
        try:
            outcome = super().handle(conn)
            if outcome is False:
                _linger(conn.sock)
            return outcome
        finally:
            self._deadlines.pop(conn, None)

    def handle_request(self, req: Any, conn: TConn) -> Any:
        """Serve a request whose headers are read."""
        self._deadlines[conn] = time.monotonic() + REQUEST_SECONDS
        try:
            return super().handle_request(req, conn)
        finally:
            _release(req)

    def murder_pending(self) -> None:
        """Run by the main loop, at least once a second: wake the threads whose client is too slow, by closing its socket under them."""
        super().murder_pending()
        now = time.monotonic()
        for conn, deadline in tuple(self._deadlines.items()):
            if now > deadline:
                with contextlib.suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RDWR)
        if self.alive and self.nr >= self._enough and self._may_end():
            _LOG.info("the web process has served enough and is replaced", extra={"fields": {"requests": self.nr}})
            self.alive = False

    def _may_end(self) -> bool:
        """Whether nothing is lost by an end now. On the main thread, which alone accepts: nobody comes between.

        Clients that are never all gone are waited for until twice as many were served; they are then served to their end.
        """
        return (self.nr_conns == 0 or self.nr >= 2 * self._enough) and self._served.idle()

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:  # noqa: ARG002 - gunicorn's signature
        """Answer what isn't HTTP with JSON."""
        status, reason = next(
            ((status, reason) for kind, status, reason in _STATUS if isinstance(exc, kind)), (500, "Internal Server Error")
        )
        if status == 500:
            _LOG.error("request failed", exc_info=exc)
        body = json.dumps({"matched": [], "ignored": [], "run": None, "code": "bad-request", "error": reason.lower()})
        head = f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        with contextlib.suppress(OSError):
            util.write_nonblock(client, (head + body).encode("latin-1"))
        if self.cfg.accesslog:
            access.tell("", access.OTHER, status, len(body), 0.0, addr[0] if isinstance(addr, tuple) else "")


def _linger(connection: socket.socket) -> None:
    """Wait on the pool thread until the client has closed, so that its answer isn't lost in a reset (RFC 9112, 9.6).

    Gunicorn would do that for two seconds a connection on its main thread, which accepts nobody meanwhile.
    """
    deadline, unread = time.monotonic() + LINGER_SECONDS, LINGER_BYTES
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        while unread > 0 and (left := deadline - time.monotonic()) > 0:
            connection.settimeout(left)
            received = len(connection.recv(4096))
            unread = unread - received if received else 0
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)  # now gunicorn's own wait ends at once


def _release(req: Any) -> None:
    """Break the circles of request, body, chunked reader and its generator: unread, they hold megabytes until a full collection."""
    if (unread := getattr(req.body.reader, "parser", None)) is not None:
        unread.close()
    req.body = None
