"""The HTTP API of a git host: JSON in, JSON out, every answer bounded in bytes and seconds, no redirect followed.

Law: what a host says is never shown, for it knows our credentials: a message has its status. A request that may have arrived isn't sent
again by itself, but for a connection that was closed while idle. The rows of `handler.feedback.git_hosts` say what is asked; this room says
how.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

from urllib3.exceptions import HTTPError

from handler import __version__
from handler.model.errors import AccessDenied, AnnealError, GitUnavailable
from handler.model.host_answer import HostBusy, HostDenied, HostRefusal, Query
from handler.source.bounded_connections import Deadline, HttpRequest, Pools, content, location, send
from handler.source.http_transport import explained, proxy_refused
from handler.source.signin import SignIn

MOST = 4 * 1024 * 1024
"""Bytes of one answer: a comment of 64 KiB comes back with its host's objects around it."""
_LONGEST = 3600.0
"""Seconds for which a host that names its own pause is left alone, at most."""
_UNSAID = 60.0
"""The same for one that names none."""
_SIGN_IN = 203  # Azure DevOps' page to sign in, in place of a refusal
_PASSING = frozenset({408, 425})  # these say nothing of what was asked
_DEEPEST = 8
_SAID = 1000  # characters of what a host says that its rows may look through


class WritePace:
    """Lets writes pass one after another, `seconds` apart, as a host wants them. Safe to share between threads."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._next, self._lock = seconds, 0.0, threading.Lock()

    def wait(self) -> None:
        """Wait for one's turn."""
        with self._lock:
            at = max(self._next, time.monotonic())
            self._next = at + self._seconds
        time.sleep(max(at - time.monotonic(), 0.0))


@dataclass(frozen=True, slots=True)
class ApiTimes:
    """Times in seconds: `total` of one request with its answer; `pace`: of writes, None: they don't wait for each other."""

    connect: float = 5.0
    read: float = 10.0
    total: float = 15.0
    pace: WritePace | None = None


class HostApi:
    """The API of one host below one URL. Safe to share between threads.

    `subject`: how errors name it; `headers`: that each request has; `needs`: what the token must be allowed to do, for the fix where it
    isn't.
    """

    def __init__(
        self,
        subject: str,
        url: str,
        sign_in: SignIn,
        pools: Callable[[str, str, str], Pools],
        ca_file: str = "",
        headers: Mapping[str, str] | None = None,
        times: ApiTimes = ApiTimes(),
    ) -> None:
        parts = urlsplit(url)
        self.subject = subject
        self.url = url.rstrip("/")
        self._sign_in = sign_in
        self._pools = pools(parts.scheme, parts.netloc, ca_file)
        self._headers = {"Accept": "application/json", **(headers or {})}
        self._times = times

    def get(self, path: str, query: Query | None = None, needs: str = "") -> Any:
        """Return what is at a path below the API's URL; None: an answer without content. Raises as `send`."""
        return self.send("GET", path, query=query, needs=needs)

    def send(self, method: str, path: str, body: Any = None, query: Query | None = None, needs: str = "") -> Any:
        """Send one request and return its answer's JSON; None: it has no content.

        Raises HostRefusal: the host refuses what was asked; HostBusy: it asks for a pause; AccessDenied, GitUnavailable, ConfigInvalid:
        it can't be asked at all.
        """
        url = f"{self.url}/{path}{'?' if query else ''}{urlencode(query or {}, doseq=True)}"
        headers = {"User-Agent": f"anneal/{__version__}", "Accept-Encoding": "identity", **self._headers}
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        if self._times.pace and method != "GET":
            self._times.pace.wait()
        with Deadline(self._times.total) as deadline:
            status, answered, text = self._answer(HttpRequest(url, headers, data, method), deadline)
        if 200 <= status < 300 and status != _SIGN_IN:
            return self._read(text)
        raise self._refusal(status, answered, text, f"{method} /{path}", needs)

    def _answer(self, request: HttpRequest, deadline: Deadline) -> tuple[int, Mapping[str, str], bytes]:
        try:
            response = send(self._pools.present(), request, self._sign_in, self._times, deadline)
            try:
                body = content(response, MOST, deadline)
                if body is None:
                    raise GitUnavailable.of(self.subject, f"its API sends more than {MOST:,} bytes")
                return response.status, response.headers, body
            finally:
                deadline.watch(None)
                response.close()
        except (AnnealError, HTTPError, OSError, ValueError) as error:
            if deadline.expired:
                raise GitUnavailable.of(self.subject, f"its API took longer than {deadline.seconds:g} s") from None
            raise explained(error, self.subject, nonsense="no valid answer of its API") from None

    def _read(self, text: bytes) -> Any:
        try:
            return json.loads(text) if text.strip() else None
        except (ValueError, RecursionError):
            raise GitUnavailable.of(self.subject, "its API answers with something else than JSON") from None

    def _refusal(self, status: int, headers: Mapping[str, str], text: bytes, asked: str, needs: str) -> AnnealError:
        said, words = _said(text)[:_SAID], f"{asked}: the API answered {status}"
        if location(status, headers):
            seen = f"{words}, a redirect; redirects are refused"
            fix = "set repository.url to its real URL, and feedback.apiUrl; Azure DevOps redirects where the token is wrong"
            return AccessDenied.of(self.subject, seen, fix=fix)
        if status == 407:
            return proxy_refused(self.subject)
        if pause := _pause(status, headers, said):
            return HostBusy.until(self.subject, words, pause)
        if status in (_SIGN_IN, 401, 403):
            named = f"; signed in by {self._sign_in.named}" if self._sign_in.named else ""
            denied = HostDenied.of(self.subject, f"{words}{named}", fix=f"let the token {needs or 'do that'}, or give another one")
            denied.said = said
            return denied
        if 400 <= status < 500 and status not in _PASSING:
            return HostRefusal.answered(self.subject, words, status, said)
        return GitUnavailable.of(self.subject, words)


def _pause(status: int, headers: Mapping[str, str], said: str) -> float:
    """Return for how many seconds the host asks not to be asked again; 0: it doesn't."""
    # 429, and GitHub's 403 with Retry-After or an empty budget (docs.github.com, "Rate limits for the REST API").
    after, left, reset = (headers.get(name, "").strip() for name in ("Retry-After", "X-RateLimit-Remaining", "X-RateLimit-Reset"))
    if status not in (403, 429, 503) or not (status == 429 or after or left == "0" or "rate limit" in said.lower()):
        return 0.0
    now = _date(headers.get("Date", "")) or time.time()
    seconds = _after(after, now)
    if seconds is None and left == "0" and reset.isascii() and reset.isdigit():
        seconds = float(reset) - now
    return _UNSAID if seconds is None else min(max(seconds, 1.0), _LONGEST)


def _after(text: str, now: float) -> float | None:
    """Return the seconds of a Retry-After (RFC 9110, 10.2.3); None: it says none."""
    if text.isascii() and text.isdigit():
        return float(text)
    date = _date(text)
    return date - now if date else None


def _date(text: str) -> float:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0


def _said(text: bytes) -> str:
    """Return what an answer says in words: hosts name it `message`, `error`, `error_description` or `errors`."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(answer, dict):
        return ""
    parts = [answer.get(key) for key in ("message", "error", "error_description", "errors")]
    return "; ".join(_flat(part, _DEEPEST) for part in parts if part)


def _flat(value: Any, deepest: int) -> str:
    """Return the words of a part."""
    if deepest and isinstance(value, dict):
        known = [_flat(each, deepest - 1) for key, each in value.items() if key in ("message", "detail", "errors", "base")]
        return ", ".join(known or [f"{key}: {_flat(each, deepest - 1)}" for key, each in list(value.items())[:5]])
    if deepest and isinstance(value, list):
        return ", ".join(_flat(each, deepest - 1) for each in value[:5])
    return value if isinstance(value, str) else str(value)[:300] if isinstance(value, int | float) else ""
