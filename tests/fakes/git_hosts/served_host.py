"""What made-up git hosts have in common: a server on loopback that checks each request against the host's published schema.

What a host's schema refuses is answered as the host answers it, and noted in `violations`: they must be none when the host is left, so a
test that means one takes it out. What a host ignores, such as a field that it doesn't know, is answered as if it weren't there, and noted.
"""

from __future__ import annotations

import base64
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Self
from urllib.parse import parse_qs

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from tests.fakes.git_hosts.exchange import Answer, Asked, Comment, Grant, Json, PullRequest, Refused, Request, Route, Schema

TOKEN = "a-token-of-the-host"
USER = "anneal"
WRITES = ("POST", "PUT", "PATCH", "DELETE")


def password(request: Request) -> str:
    """Return the password of a request's basic authentication; empty: it has none."""
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    return base64.b64decode(value).decode().partition(":")[2] if kind == "Basic" else ""


def closed(schema: Json) -> Json:
    """Return a schema that knows no other fields than those it names."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(value) for name, value in schema.items()}
    return {"additionalProperties": False, **found} if isinstance(schema.get("properties"), dict) else found


class ServedHost(ABC):
    """A host. While entered it answers at `url`; `stop` refuses connections until `start`.

    `down`: it answers 503; `slow`: seconds before each answer; `limited`: seconds for which it wants to be left alone, 0: it doesn't;
    `denied`: no token may do anything; `writes_a_minute`: what it takes of them, 0: any number. `statuses`: by commit, in order.
    """

    root: ClassVar[str]
    scopes: ClassVar[frozenset[str]]

    def __init__(self, repository: str = "acme/shop") -> None:
        self.repository = repository
        self.commits: set[str] = set()
        self.merge_bases: dict[tuple[str, str], str] = {}
        self.statuses: dict[str, list[Json]] = {}
        self.pull_requests: dict[int, PullRequest] = {}
        self.comments: dict[int, Comment] = {}
        self.users: dict[str, str] = {}
        self.tokens: dict[str, Grant] = {TOKEN: Grant(USER, self.scopes)}
        self.requests: list[Request] = []
        self.violations: list[str] = []
        self.down = self.denied = False
        self.slow = 0.0
        self.limited = self.writes_a_minute = 0
        self.clock: Callable[[], float] = time.monotonic
        self._routes = tuple(self.routes())
        self._writes: list[float] = []
        self._numbers = 0
        self._one_by_one = threading.Lock()
        self._over = threading.Event()
        self._port = 0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        self.stop()
        assert kind is not None or not self.violations, "\n".join(self.violations)

    def start(self) -> Self:
        """Listen, again where it listened before."""
        self._server: _Server | None = _Server(("127.0.0.1", self._port), _Handler)
        self._server.host = self
        self._port = int(self._server.server_address[1])
        self._serving = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._serving.start()
        return self

    def stop(self) -> None:
        """Refuse connections."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._serving.join()
        self._server = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """Where its API begins."""
        return f"{self.origin}{self.root}"

    def asked(self, method: str = "", part: str = "") -> list[Request]:
        """Return the requests of a method whose path holds something."""
        return [each for each in self.requests if method in ("", each.method) and part in each.path]

    def next_number(self) -> int:
        """Return the number of something new."""
        self._numbers += 1
        return self._numbers

    def respond(self, request: Request) -> Answer:
        """Answer one request."""
        self.requests.append(request)
        if self.slow:
            self._over.wait(self.slow)
        try:
            with self._one_by_one:
                return self._answer(request)
        except Refused as refused:
            return refused.answer
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shall see it, and not a thread's standard error
            self.violation(request, f"the made-up host fails: {error!r}")
            return Answer(500, self.error("Internal Server Error"))

    def _answer(self, request: Request) -> Answer:
        if self.down:
            return Answer(503, text="Service Unavailable")
        if self.limited:
            return self.busy(self.limited)
        self._count(request)
        grant = self.tokens.get(self.token_of(request))
        found = next(((route, at) for route in self._routes if (at := route.at(request)) is not None), None)
        if found is None:
            self.violation(request, "the host has no such operation")
            return self.missing("")
        route, at = found
        asked = Asked(request, route, at, grant.user if grant else "")
        if route.needs and not grant:
            return self.unknown_token()
        if route.needs and (self.denied or (grant and not self.may(grant, route.needs))):
            return self.forbidden(asked)
        self.check(asked)
        return route.answer(asked)

    def _count(self, request: Request) -> None:
        """Refuse a write that comes too soon after many others."""
        if not self.writes_a_minute or request.method not in WRITES:
            return
        now = self.clock()
        self._writes = [each for each in self._writes if each > now - 60]
        if len(self._writes) >= self.writes_a_minute:
            raise Refused(self.busy(int(self._writes[0] + 60 - now) + 1))
        self._writes.append(now)

    def check(self, asked: Asked) -> None:
        """Note what the schema refuses. Raises Refused: the host refuses it, too."""
        request, route = asked.request, asked.route
        for name in request.query.keys() - route.query:
            self.violation(request, f"the operation has no parameter {name}")
        if route.body is None:
            if request.content:
                self.violation(request, "the operation takes no body")
            return
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind != "application/json":
            self.violation(request, f"a body of the type {kind!r}")
        try:
            body = request.body
        except ValueError:
            self.violation(request, "the body is no JSON")
            raise Refused(self.unreadable()) from None
        self._check_fields(asked, body, closed(route.body))

    def _check_fields(self, asked: Asked, body: Json, schema: Schema) -> None:
        found = sorted(Draft202012Validator(schema).iter_errors(body), key=lambda each: (each.json_path, str(each.validator)))
        for error in found:
            self.violation(asked.request, f"{error.json_path}: {error.message[:200]}")
        for error in found:
            if error.validator != "additionalProperties":
                raise Refused(self.invalid(asked, error))

    def violation(self, request: Request, words: str) -> None:
        self.violations.append(f"{request}: {words}")

    def may(self, grant: Grant, needs: Sequence[str]) -> bool:
        """Whether a token has one of some scopes."""
        return any(each in grant.scopes for each in needs)

    def token_of(self, request: Request) -> str:
        """Return the token that a request carries."""
        return request.headers.get("authorization", "").removeprefix("Bearer ")

    def merge_base(self, one: str, other: str) -> str:
        """Return what `merge_bases` has of two commits in any order; empty: they have none."""
        return self.merge_bases.get((one, other)) or self.merge_bases.get((other, one)) or (one if one == other else "")

    @abstractmethod
    def routes(self) -> Sequence[Route]:
        """Return the operations."""

    @abstractmethod
    def error(self, message: str) -> Json:
        """Return the body that the host sends with a message."""

    @abstractmethod
    def busy(self, seconds: int) -> Answer:
        """Answer that it wants to be left alone for a while."""

    @abstractmethod
    def unknown_token(self) -> Answer:
        """Answer to a token that it doesn't know."""

    @abstractmethod
    def forbidden(self, asked: Asked) -> Answer:
        """Answer to a token that may not do this."""

    @abstractmethod
    def missing(self, what: str) -> Answer:
        """Answer to what names something that isn't there."""

    @abstractmethod
    def unreadable(self) -> Answer:
        """Answer to a body that is no JSON."""

    @abstractmethod
    def invalid(self, asked: Asked, error: ValidationError) -> Answer:
        """Answer to a body that the schema refuses."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    host: ServedHost

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients hang up on what takes too long."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def _respond(self) -> None:
        host = self.server.host
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        content = self.rfile.read(int(headers.get("content-length") or 0))
        below = path.removeprefix(host.root) if path.startswith(host.root) else f"outside the API: {path}"
        answer = host.respond(Request(self.command, below, parse_qs(query, keep_blank_values=True), headers, content))
        self.send_response(answer.status)
        kind = "text/html" if answer.text else "application/json; charset=utf-8"
        for name, value in {"Content-Type": kind, "Content-Length": str(len(answer.content)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _respond  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        pass
