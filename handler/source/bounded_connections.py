"""Connections that end: the deadline of an operation shuts the socket in use, however slowly its bytes drip; and requests over them.

A socket's own time-out starts anew with every byte, also in a response's head, which only http.client sees. Law: no redirect is followed
here, nothing is unpacked, and an answer that the deadline cut isn't taken for a whole one.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar, cast
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ProtocolError
from urllib3.response import BaseHTTPResponse, HTTPResponse

from handler.model.errors import ConfigInvalid
from handler.source.signin import SignIn

_KEPT = 16  # idle connections to one host that are kept; the runs that may ask it at once
_CHUNK = 1 << 16
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_current = threading.local()


class Closing(Protocol):
    """What an operation holds open."""

    def close(self) -> None:
        """Let it go."""


C = TypeVar("C", bound=Closing)


class Deadline:
    """The time of one operation. When it is over, the socket in use is shut, which wakes the thread that reads from it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.expired = self.opened = False  # `opened`: the request in hand has a connection of its own, which was never idle
        self._end = time.monotonic() + seconds
        self._socket: socket.socket | None = None
        self._kept: Closing | None = None
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        _current.deadline = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if self._kept:
                self._kept.close()
        finally:
            self._timer.cancel()
            _current.deadline = None

    def left(self, most: float) -> float:
        """Return the seconds left, at most `most`; never 0, which would mean "don't wait" to a socket."""
        return max(0.001, min(most, self._end - time.monotonic()))

    def keep(self, make: Callable[[Deadline], C]) -> C:
        """Return what this operation holds open, made at the first need and closed at the operation's end."""
        if self._kept is None:
            self._kept = make(self)
        return cast(C, self._kept)

    def watch(self, used: socket.socket | None) -> None:
        """Take the socket that is going to be read from; None: done with it, the next user may be another operation."""
        self._socket = used
        if self.expired:
            self._expire()

    def _expire(self) -> None:
        self.expired = True
        if isinstance(self._socket, socket.socket):
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # below TLS: an SSLSocket's own shutdown isn't safe from here


def _watch(used: socket.socket | None, *, opened: bool = False) -> None:
    deadline = getattr(_current, "deadline", None)
    if deadline:
        deadline.opened |= opened
        deadline.watch(used)


class _Plain(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        used = super()._new_conn()
        _watch(used, opened=True)  # a proxy's answer to CONNECT can drip, too
        return used

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # urllib3 overrides http.client alike
        _watch(self.sock)
        return super().getresponse()


class _Tls(_Plain, HTTPSConnection):
    """The same below TLS."""


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _Tls


class Pools:
    """The connection pools to one host; made anew when the file of authorities changes. Safe to share between threads."""

    def __init__(self, scheme: str, netloc: str, ca_file: str) -> None:
        self._make = partial(pools_for, scheme, netloc, ca_file)
        self._ca_file = ca_file
        self._trusted = _stamp(ca_file)
        self._pools = self._make()
        self._lock = threading.Lock()

    def present(self) -> urllib3.PoolManager:
        """Return the pools that trust what the file holds now; connections made before are let go."""
        with self._lock:
            stamp = _stamp(self._ca_file)
            if stamp != self._trusted:
                before, self._pools, self._trusted = self._pools, self._make(), stamp
                before.clear()
            return self._pools

    def close(self) -> None:
        """Close the idle connections."""
        self._pools.clear()


def _stamp(file: str) -> tuple[int, ...]:
    """Return device, inode, size and mtime; empty for a file that can't be read, which its use will find out."""
    try:
        found = Path(file).stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def pools_for(scheme: str, netloc: str, ca_file: str) -> urllib3.PoolManager:
    """Make the connection pools: through the proxy that HTTP(S)_PROXY and NO_PROXY name, or straight. Raises ConfigInvalid: it's no URL."""
    trust = {"cert_reqs": "CERT_REQUIRED", "ca_certs": ca_file or None}
    proxy = "" if proxy_bypass(netloc.rpartition("@")[2]) else getproxies().get(scheme, "")
    try:
        pools = _proxied(proxy, trust) if proxy else urllib3.PoolManager(maxsize=_KEPT, **trust)  # type: ignore[arg-type]  # a mixed dict
    except ValueError:  # its text may hold the proxy's password
        fix = "write http://proxy:port, or name the host in NO_PROXY"
        raise ConfigInvalid.of(f"{scheme.upper()}_PROXY", "isn't the URL of a proxy", fix=fix) from None
    pools.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}
    return pools


def _proxied(proxy: str, trust: dict[str, str | None]) -> urllib3.ProxyManager:
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if not all(0 < len(label) < 64 for label in (parts.hostname or "").removesuffix(".").split(".")):
        raise ValueError("no host has such a name")
    headers = urllib3.make_headers(proxy_basic_auth=unquote(parts.netloc.rpartition("@")[0])) if parts.username else None
    bare = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return urllib3.ProxyManager(bare, proxy_headers=headers, maxsize=_KEPT, **trust)  # type: ignore[arg-type]  # a mixed dict of options


class Timeouts(Protocol):
    """How long to wait; seconds."""

    @property
    def connect(self) -> float:
        """For a connection."""

    @property
    def read(self) -> float:
        """For the next bytes."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. `body`: POSTed; None: GET. `method`: another one than these."""

    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    method: str = ""


def send(pools: urllib3.PoolManager, request: HttpRequest, sign_in: SignIn, timeouts: Timeouts, deadline: Deadline) -> BaseHTTPResponse:
    """Send a request and return its answer, unread. Refused credentials are read anew once: they may have been rotated.

    Raises what urllib3 raises, OSError, and what `sign_in` raises.
    """
    authorization = sign_in.authorization()
    response = _connected(pools, request, authorization, timeouts, deadline)
    if response.status not in (401, 403) or not sign_in.refused(authorization):
        return response
    deadline.watch(None)
    response.close()
    return _connected(pools, request, sign_in.authorization(), timeouts, deadline)


def location(status: int, headers: Mapping[str, str]) -> str:
    """Return where an answer leads, as it is written there; empty: nowhere, it is no redirect (RFC 9110, 15.4)."""
    return headers.get("Location", "") if status in _REDIRECTS else ""


def content(response: BaseHTTPResponse, most: int, deadline: Deadline) -> bytes | None:
    """Return an answer's whole content; None: it has more bytes than `most`. Raises HTTPError, OSError: it broke off, or took too long."""
    declared = response.headers.get("Content-Length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:18]) > most:
        return None
    data = bytearray()
    while part := response.read1(_CHUNK, decode_content=False):
        data += part
        if len(data) > most:
            return None
    if deadline.expired:  # an answer without a length, cut by us, looks whole
        raise TimeoutError
    response.release_conn()
    return bytes(data)


def _connected(
    pools: urllib3.PoolManager, request: HttpRequest, authorization: str, timeouts: Timeouts, deadline: Deadline
) -> BaseHTTPResponse:
    """Send; a connection that the host closed while idle is replaced once. A write that a new one may have brought isn't sent again."""

    def once() -> BaseHTTPResponse:
        deadline.opened = False
        return pools.request(
            request.method or ("GET" if request.body is None else "POST"),
            request.url,
            body=request.body,
            headers={**request.headers, **({"Authorization": authorization} if authorization else {})},
            preload_content=False,
            decode_content=False,
            redirect=False,
            retries=False,
            timeout=urllib3.Timeout(connect=deadline.left(timeouts.connect), read=deadline.left(timeouts.read)),
        )

    try:
        return once()
    except ProtocolError:
        if deadline.expired or (deadline.opened and request.method not in ("", "GET")):
            raise
        return once()
