"""Raw JSON over one keep-alive pool, with one identity. Every request of the room passes here.

Retried are 429, 500, 502, 503, 504 and broken connections, with the server's Retry-After or a jittered back-off, until a total
deadline; 401 once, after the credentials are loaded anew. Only a repeatable request is sent twice:

- GET, WATCH, dry runs, access reviews: always.
- Server-side apply: the second does nothing, or, with a resourceVersion, meets 409 (`Moved`).
- PUT with a resourceVersion, JSON patches that carry one: the second meets 409.
- DELETE with a uid precondition: the second finds nothing, or meets 409.
- Anything else (POST, a bare PUT or DELETE): after 429 or when the connection wasn't even made; otherwise the outcome is unknown and
  `ClusterUnavailable` says so.

Every request carries its own Audit-ID, which the server sends back: an answer to another request (a proxy that lost count on a
keep-alive connection) counts as a broken connection. There is no client-side throttle: the server's API priority and fairness decides.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

from handler.cluster.connect import ClusterConnection
from handler.cluster.errors import RETRIED, Crossed, never_sent, place_of, refused, unreachable
from handler.model.backoff import Backoff
from handler.model.deadline import left
from handler.model.errors import AnnealError, ClusterUnavailable
from handler.model.names import Resource

JSON = "application/json"
_CONNECT, _STALLED = 5.0, 3.0
_PAUSES = Backoff(0.1, 10.0)
_MARK = f"anneal-{uuid.uuid4().hex[:12]}-"
_NUMBERS = itertools.count()
stalled: ContextVar[Callable[[AnnealError, bool], None]] = ContextVar("stalled", default=lambda _failure, _over: None)
"""Takes the failure of a request that the server refuses for a while, and again once that is over; not of those that records need."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request as a value. `repeatable`: may be sent again when its outcome is unknown; `before` runs before each attempt."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: bytes | None = field(default=None, repr=False)
    content_type: str = JSON
    accept: str = JSON
    subject: str = ""
    repeatable: bool = True
    before: Callable[[], None] | None = None

    @property
    def name(self) -> str:
        """The subject of messages about this request."""
        return self.subject or str(place_of(self.path))


class Api:
    """The API server, seen with one identity. Safe to share between threads.

    `impersonate`: `namespace/name` of a ServiceAccount, empty: our own rights; its groups are added by the server, so that only
    `impersonate` on it is to be granted. `pool`: connections kept alive. Seconds, none beyond `handler.model.deadline`: `deadline`: no
    attempt begins after it; `unmet`: the same where no connection is accepted; `silence`: without a byte an attempt has failed; an apply
    of a large object may take half a minute (kubernetes#102749), a Lease can't wait that long.
    """

    def __init__(
        self,
        connection: ClusterConnection,
        *,
        impersonate: str = "",
        pool: int = 16,
        deadline: float = 30.0,
        silence: float = 60.0,
        unmet: float = math.inf,
    ) -> None:
        self.connection = connection
        self.impersonate = impersonate
        self._size = pool
        self._deadline = deadline
        self._silence = silence
        self._unmet = unmet
        self._lock = threading.Lock()
        self._requests = 0
        self._date: tuple[float, float] | None = None
        self.awaited: dict[str, float] = {}
        """Admission webhooks, and when a request has given one up: until it answers, no other waits as long for it."""
        self._headers = {"User-Agent": "anneal"}
        if impersonate:
            self._headers["Impersonate-User"] = "system:serviceaccount:" + impersonate.replace("/", ":", 1)

    @property
    def requests(self) -> int:
        """Requests sent so far, each retry counted."""
        return self._requests

    def server_time(self) -> float:
        """Return the API server's clock in seconds since the epoch, never ahead: its last `Date` and the monotonic time since."""
        if not self._date:
            self.get("/version")
        if not self._date:
            raise ClusterUnavailable.of("/version", f"{self.connection.host} answers without a Date, so its clock isn't known")
        date, seen = self._date
        return date + time.monotonic() - seen

    def get(self, path: str, query: Mapping[str, str] | None = None, *, accept: str = JSON, subject: str = "") -> dict[str, Any] | None:
        """Read an object or a list; None when there is none (404)."""
        return self.send(ApiRequest("GET", path, query, accept=accept, subject=subject))

    def post(self, path: str, body: Any, query: Mapping[str, str] | None = None, *, repeatable: bool = False) -> dict[str, Any]:
        """Create. `repeatable` only for reviews and dry runs, which leave nothing behind."""
        return self.expect(ApiRequest("POST", path, query, encode(body), repeatable=repeatable))

    def put(self, path: str, body: dict[str, Any], query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Replace. Raises Moved when the body's resourceVersion isn't the live one."""
        safe = bool((body.get("metadata") or {}).get("resourceVersion"))
        return self.expect(ApiRequest("PUT", path, query, encode(body), repeatable=safe))

    def patch(self, path: str, body: Any, content_type: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Patch. Repeated after a broken connection only as server-side apply."""
        return self.expect(ApiRequest("PATCH", path, query, encode(body), content_type, repeatable="apply-patch" in content_type))

    def delete(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Delete with DeleteOptions; None when it is gone already (404)."""
        safe = bool(((body or {}).get("preconditions") or {}).get("uid"))
        return self.send(ApiRequest("DELETE", path, None, encode(body or {}), repeatable=safe))

    def expect(self, request: ApiRequest) -> dict[str, Any]:
        """Send and return the answer; a 404 is refused like any other 4xx (`ApiRefused`, with what the server says is missing)."""
        response = self._answered(request, preload=True)
        if response.status == 404:
            raise refused(404, _status_of(response), request.method, request.path, request.name, request.body)
        return self._parsed(response, request)

    def send(self, request: ApiRequest) -> dict[str, Any] | None:
        """Send until it is answered, refused or the deadline passed; None for 404.

        Raises what `errors.refused` (AccessDenied, Moved, ApiRefused, NotReady) and `errors.unreachable` return.
        """
        response = self._answered(request, preload=True)
        return None if response.status == 404 else self._parsed(response, request)

    def _parsed(self, response: urllib3.BaseHTTPResponse, request: ApiRequest) -> dict[str, Any]:
        try:
            answer = json.loads(response.data)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise ClusterUnavailable.of(request.name, f"{self.connection.host} answers {response.status}, but not with a JSON object")
        return checked(answer, request.method, request.path, request.name)

    def stream(self, request: ApiRequest) -> urllib3.BaseHTTPResponse:
        """Open a WATCH and return its unread response; the caller closes it. The same errors as `send`, and ApiRefused for 404."""
        response = self._answered(request, preload=False)
        if response.status == 404:
            raise refused(404, _status_of(response), request.method, request.path, request.name)
        return response

    def _answered(self, request: ApiRequest, *, preload: bool) -> urllib3.BaseHTTPResponse:
        begun = time.monotonic()
        end, renewed, webhook, told = begun + left(self._deadline), False, "", None
        for attempt in itertools.count():
            if request.before:
                request.before()
            generation = self.connection.generation
            outcome = self._attempt(request, preload=preload)
            if isinstance(outcome, urllib3.BaseHTTPResponse) and (outcome.status < 300 or _is_missing(outcome, request)):
                self.awaited.pop(webhook, None)  # it answers again
                if told:
                    stalled.get()(told, True)
                return outcome
            if not renewed and _credentials_rotated(outcome):
                renewed = True
                self.connection.refresh(generation)
                continue
            failure, again = self._failure(outcome, request)
            again = again and isinstance(failure, ClusterUnavailable)
            if isinstance(failure, ClusterUnavailable) and failure.webhook:
                webhook = failure.webhook
                again = again and self.awaited.get(webhook, -math.inf) < begun - self._deadline
            pause = _pause(attempt, outcome)
            most = begun + self._unmet if isinstance(outcome, Exception) and never_sent(outcome) else math.inf
            if not again or time.monotonic() + pause > min(end, most):
                self.awaited |= {webhook: time.monotonic()} if webhook else {}
                raise failure
            is_refused = not isinstance(outcome, Exception) and not request.path.startswith(_ALWAYS_SERVED)
            if is_refused and not told and time.monotonic() - begun >= _STALLED:
                told = failure
                stalled.get()(told, False)
            time.sleep(pause)
        raise AssertionError  # pragma: no cover - count() never ends

    def _attempt(self, request: ApiRequest, *, preload: bool) -> urllib3.BaseHTTPResponse | Exception:
        audit = f"{_MARK}{next(_NUMBERS)}"
        headers = {**self._headers, "Accept": request.accept, "Audit-ID": audit}
        authorization = self.connection.authorization()
        if authorization:
            headers["Authorization"] = authorization
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        url = self.connection.host + quote(request.path, safe="/:") + ("?" + urlencode(request.query) if request.query else "")
        timeout = urllib3.Timeout(connect=left(min(_CONNECT, self._silence)), read=left(self._silence))
        with self._lock:
            self._requests += 1
        try:
            response = self.connection.pool(self._size).request(
                request.method, url, body=request.body, headers=headers, timeout=timeout, retries=False, preload_content=False
            )
            if not echoes(audit, response.headers, _MARK):
                response.close()
                return Crossed()
            self._note_date(response.headers.get("Date") or "")
            if preload:
                response.read(cache_content=True)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            return error
        return response

    def _note_date(self, text: str) -> None:
        try:
            self._date = (parsedate_to_datetime(text).timestamp(), time.monotonic())
        except ValueError:
            return  # none, or nonsense: the last one holds

    def _failure(self, outcome: urllib3.BaseHTTPResponse | Exception, request: ApiRequest) -> tuple[AnnealError, bool]:
        if isinstance(outcome, Exception):
            failure = unreachable(outcome, self.connection.host, request.method, request.name)
            return failure, request.repeatable or never_sent(outcome)
        body = _status_of(outcome)
        if outcome.status == 404:
            seen = f"{self.connection.host} answers 404, but not in an API server's words"
            return ClusterUnavailable.of(request.name, seen), request.repeatable
        failure = refused(outcome.status, body, request.method, request.path, request.name, request.body, self.connection.unsigned)
        return failure, outcome.status == 429 or (outcome.status in RETRIED and request.repeatable)


def encode(body: Any) -> bytes:
    """Return a body as the JSON that goes over the wire."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _credentials_rotated(outcome: urllib3.BaseHTTPResponse | Exception) -> bool:
    """Return whether loading the kubeconfig anew may help: 401, or an API server with a new authority."""
    if isinstance(outcome, Exception):
        return "CERTIFICATE_VERIFY_FAILED" in str(outcome)
    return outcome.status == 401


def _status_of(response: urllib3.BaseHTTPResponse) -> Any:
    """Return the parsed body of a refusal, None when it can't be read; the connection is free again afterwards."""
    try:
        return json.loads(response.data)
    except (ValueError, RecursionError, urllib3.exceptions.HTTPError, OSError):
        return None
    finally:
        response.release_conn()


def _is_missing(response: urllib3.BaseHTTPResponse, request: ApiRequest) -> bool:
    return response.status == 404 and is_missing(request.path, _status_of(response), response.data)


def _pause(attempt: int, outcome: urllib3.BaseHTTPResponse | Exception) -> float:
    """Return the back-off in seconds: 0.1 s doubling, half of it random; at least Retry-After and up to a quarter more."""
    spread = random.random()  # noqa: S311 - spreads callers, protects nothing
    ours = _PAUSES.after(attempt + 1) * (0.5 + spread / 2)
    after = "" if isinstance(outcome, Exception) else outcome.headers.get("Retry-After", "")
    return max(ours, float(after) * (1 + spread / 4)) if after.isascii() and after.isdigit() else ours


_ALWAYS_SERVED = ("/api/v1/", "/apis/coordination.k8s.io/v1/")
"""What every API server serves: here only a Status says that something isn't there."""
_UNKNOWN = b"404 page not found"
"""The API server's body for a path that it doesn't serve, such as a group that is gone (Go's `http.NotFound`)."""


def is_missing(path: str, body: Any, said: bytes = b"") -> bool:
    """Return whether a 404 says that there is no such object or kind. `body`: its JSON, `said`: its bytes. A proxy's page doesn't."""
    return (isinstance(body, dict) and body.get("kind") == "Status") or (not path.startswith(_ALWAYS_SERVED) and said.strip() == _UNKNOWN)


def checked(answer: dict[str, Any], method: str, path: str, subject: str) -> dict[str, Any]:
    """Return the answer to a request that reads or writes one object if it is that object; any other answer as it is."""
    place = place_of(path)
    if not place.name or method not in ("GET", "PUT", "PATCH"):
        return answer
    metadata = answer.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != place.name or (metadata.get("namespace") or "") != place.namespace:
        raise ClusterUnavailable.of(subject, f"{method} was answered with something else than this object")
    return answer


def items_of(answer: dict[str, Any], resource: Resource, subject: str, *, partial: bool) -> list[dict[str, Any]]:
    """Return the objects of one page of a LIST of this kind; `partial`: of PartialObjectMetadata, which any server may ignore."""
    items = answer.get("items", ())
    found = items if isinstance(items, list) else [] if items is None else None
    version = answer.get("apiVersion") in (resource.api_version, *(("meta.k8s.io/v1",) if partial else ()))
    if found is None or not version or not isinstance(answer.get("metadata"), dict) or not all(_is_object(item) for item in found):
        raise ClusterUnavailable.of(subject, "was answered with something else than this list")
    named = {str(item["kind"]) for item in found if "kind" in item} - {"PartialObjectMetadata"}
    if named - {resource.kind} or _is_of_another(str(answer.get("kind")), resource, items_tell=bool(named)):
        raise ClusterUnavailable.of(subject, f"was answered with a {answer.get('kind')}")
    return found


def echoes(sent: str, headers: Mapping[str, str], mark: str) -> bool:
    """Whether an answer may belong to this Audit-ID: only another id that begins with `mark` isn't ours; a proxy may drop or replace it."""
    heard = [part.strip() for part in headers.get("Audit-Id", "").split(",")]
    return sent in heard or not any(part.startswith(mark) for part in heard)


def _is_of_another(kind: str, resource: Resource, *, items_tell: bool) -> bool:
    """Return whether a list's kind names another kind. CRDs choose it freely; groups without a dot have no CRDs."""
    built_in = "." not in resource.group
    return built_in and not items_tell and kind not in (f"{resource.kind}List", "PartialObjectMetadataList", "List")


def _is_object(item: Any) -> bool:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)
