"""The API of a git host over real HTTP: what is sent, what each answer becomes, and what never shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from typing import Any

import pytest

from handler import __version__
from handler.config.secret_ref import SecretRef
from handler.model.errors import AccessDenied, AnnealError, GitUnavailable
from handler.model.host_answer import HostBusy, HostDenied, HostRefusal
from handler.source.bounded_connections import Pools
from handler.source.host_api import MOST, ApiTimes, HostApi, WritePace
from handler.source.signin import Anonymous, SignIn, Token, basic
from tests.patience import PATIENCE
from tests.rooms.source.canned_host import Canned, CannedHost
from tests.rooms.source.open_repository import Secret

CANARY = "canary-7d1e0b-token"
PATIENT = ApiTimes(connect=PATIENCE, read=PATIENCE, total=5 * PATIENCE)
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


def token(read: Callable[[Any], Secret] = lambda _: Secret(CANARY), form: Callable[[str], str] = "Bearer {}".format) -> Token:
    return Token(SecretRef(env="TOKEN"), "feedback.token", read, form=form)


def api(host: CannedHost, sign_in: SignIn | None = None, times: ApiTimes = PATIENT, **parts: Any) -> HostApi:
    """Return the API of a host; its connections are closed by the garbage collector, as urllib3 does it."""
    return HostApi("API", host.url, sign_in or token(), Pools, times=times, **parts)


@pytest.fixture
def host() -> Iterator[CannedHost]:
    with CannedHost() as made:
        yield made


# --- what is sent


def test_a_request_has_what_hosts_want(host: CannedHost) -> None:
    asked = api(host, headers={"Accept": "application/vnd.github+json"})
    host.answers = [Canned.of({"id": 7}, 201)]
    assert asked.send("POST", "repos/a/statuses/b", {"text": "ä"}, {"refs[]": ["one", "two"], "page": "1"}) == {"id": 7}
    (came,) = host.came
    assert (came.method, came.path) == ("POST", "/api/repos/a/statuses/b?refs%5B%5D=one&refs%5B%5D=two&page=1")
    assert json.loads(came.body) == {"text": "ä"}
    assert {name: came.headers[name] for name in ("accept", "authorization", "content-type", "user-agent")} == {
        "accept": "application/vnd.github+json",
        "authorization": f"Bearer {CANARY}",
        "content-type": "application/json",
        "user-agent": f"anneal/{__version__}",
    }


def test_a_question_has_no_body_and_one_connection_serves_several(host: CannedHost) -> None:
    asked = api(host, Anonymous())
    assert [asked.get("a"), asked.get("b")] == [{}, {}]
    assert [(came.body, came.headers.get("content-type"), came.headers.get("authorization")) for came in host.came] == [
        (b"", None, None)
    ] * 2
    assert host.connections == 1


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_an_answer_without_content_is_none(host: CannedHost, status: int) -> None:
    host.answers = [Canned(status, b"")]
    assert api(host).get("a") is None


def test_the_token_is_read_for_each_request_and_once_more_when_it_is_refused(host: CannedHost) -> None:
    values = iter(["first", "second", "third", "third"])
    asked = api(host, token(lambda _: Secret(next(values))))
    asked.get("a")
    host.answers = [Canned(401), Canned()]
    asked.get("b")
    assert [came.headers["authorization"] for came in host.came] == ["Bearer first", "Bearer second", "Bearer third"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_is_the_same_still_is_not_tried_twice(host: CannedHost, status: int) -> None:
    host.answers = [Canned.of({"message": "Bad credentials"}, status)]
    with pytest.raises(AccessDenied) as refused:
        api(host).get("user", needs="read users")
    assert len(host.came) == 1
    seen = "API: GET /user: the API answered {}; signed in by feedback.token: token of environment variable TOKEN"
    assert str(refused.value).startswith(seen.format(status)), refused.value
    assert refused.value.problems[0].fix == "let the token read users, or give another one"


def test_a_password_beside_a_user_is_basic(host: CannedHost) -> None:
    api(host, token(form=partial(basic, ""))).get("a")
    assert host.came[0].headers["authorization"] == basic("", CANARY)


# --- what answers become


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (Canned.of({"message": "No commit found"}, 422), HostRefusal, "GET /a: the API answered 422"),
        (Canned.of({"message": "Not Found"}, 404), HostRefusal, "GET /a: the API answered 404"),
        (Canned.of({"message": "in progress"}, 409), HostRefusal, "GET /a: the API answered 409"),
        (Canned(400, b"<h1>Bad Request (400)</h1>"), HostRefusal, "GET /a: the API answered 400"),
        (Canned(408), GitUnavailable, "GET /a: the API answered 408"),
        (Canned(425), GitUnavailable, "GET /a: the API answered 425"),
        (Canned(304, b""), GitUnavailable, "GET /a: the API answered 304"),
        (Canned(300), GitUnavailable, "GET /a: the API answered 300"),
        (Canned(302), GitUnavailable, "GET /a: the API answered 302"),
        (Canned(500), GitUnavailable, "GET /a: the API answered 500"),
        (Canned.of({"message": "overload"}, 502), GitUnavailable, "GET /a: the API answered 502"),
        (Canned(503, b"Service Unavailable"), GitUnavailable, "GET /a: the API answered 503"),
        (Canned(203, b"<html>Sign in</html>"), HostDenied, "GET /a: the API answered 203"),
        (Canned(407), AccessDenied, "the proxy answered 407"),
        (Canned(200, b"<html>Welcome</html>"), GitUnavailable, "its API answers with something else than JSON"),
        (Canned(200, b"[" * 100_000), GitUnavailable, "its API answers with something else than JSON"),
        (Canned(200, b'{"a": "\xff"}'), GitUnavailable, "its API answers with something else than JSON"),
        (Canned(200, b"1" * 5000), GitUnavailable, "its API answers with something else than JSON"),
        (Canned(cut=True), GitUnavailable, "the host broke off the connection"),
        (Canned(200, b"{", declared=100), GitUnavailable, "the host broke off the connection"),
    ],
    ids=lambda each: f"{each.status}-{each.body[:12]!r}" if isinstance(each, Canned) else "",
)
def test_an_answer_becomes_the_error_of_the_one_that_must_act(
    host: CannedHost, answer: Canned, error: type[AnnealError], words: str
) -> None:
    host.answers = [answer]
    with pytest.raises(error) as raised:
        api(host).get("a")
    assert type(raised.value) is error
    assert words in str(raised.value)


def test_a_refusal_keeps_what_was_said_for_the_rows_alone(host: CannedHost) -> None:
    host.answers = [Canned.of({"message": "Validation Failed", "errors": [{"field": "body", "message": "is too long"}]}, 422)]
    with pytest.raises(HostRefusal) as refused:
        api(host).send("POST", "a", {})
    assert (refused.value.status, refused.value.said) == (422, "Validation Failed; is too long")
    assert "long" not in f"{refused.value} {refused.value!r}"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"error": "insufficient_scope", "error_description": "It has read_api."}, "insufficient_scope; It has read_api."),
        ({"message": {"name": ["is taken"], "description": ["is too long"]}}, "name: is taken, description: is too long"),
        ({"type": "error", "error": {"message": "key: too long", "fields": {"key": ["too long"]}}}, "key: too long"),
        ({"error": {"message": "lacks scopes", "detail": {"required": ["pullrequest"]}}}, "lacks scopes, required: pullrequest"),
        ({"errors": [{"context": "text", "message": "Please", "exceptionName": None}]}, "Please"),
        ({"message": 7}, "7"),
        ({"message": None}, ""),
        (["message"], ""),
        ("message", ""),
    ],
)
def test_hosts_say_it_in_different_places(host: CannedHost, document: Any, said: str) -> None:
    host.answers = [Canned.of(document, 400)]
    with pytest.raises(HostRefusal) as refused:
        api(host).get("a")
    assert refused.value.said == said


def test_what_is_said_may_be_as_deep_as_it_likes(host: CannedHost) -> None:
    host.answers = [Canned(400, b'{"message": ' + b"[" * 900 + b'"deep"' + b"]" * 900 + b"}")]
    with pytest.raises(HostRefusal) as refused:
        api(host).get("a")
    assert refused.value.said == ""


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused_and_not_quoted(host: CannedHost, status: int) -> None:
    host.answers = [Canned(status, b"", {"Location": f"https://a:{CANARY}@other.example.com/repositories/7/{CANARY}?code={CANARY}"})]
    with pytest.raises(AccessDenied) as refused:
        api(host).send("POST", "a", {"text": CANARY})
    assert f"the API answered {status}, a redirect" in str(refused.value)
    assert not {CANARY, "other.example.com"} & set(str(refused.value).replace("/", " ").split())
    assert len(host.came) == 1


def test_a_host_that_is_not_there_is_unavailable() -> None:
    with CannedHost() as host:
        asked = api(host)
    with pytest.raises(GitUnavailable):
        asked.get("a")


# --- bounds


@pytest.mark.parametrize("headers", [{}, {"Content-Length": ""}], ids=["declared", "undeclared"])
def test_an_answer_is_bounded_in_bytes(host: CannedHost, headers: dict[str, str]) -> None:
    fits = b'"' + b"x" * (MOST - 2) + b'"'
    host.answers = [Canned(body=fits, headers=headers)]
    assert len(api(host).get("a")) == MOST - 2
    host.answers = [Canned(body=fits + b" ", headers=headers)]
    with pytest.raises(GitUnavailable, match="more than 4,194,304 bytes"):
        api(host).get("a")


def test_a_refusal_is_bounded_in_bytes_too(host: CannedHost) -> None:
    host.answers = [Canned(400, b"x" * (MOST + 1))]
    with pytest.raises(GitUnavailable, match="more than 4,194,304 bytes"):
        api(host).get("a")


@pytest.mark.parametrize("body", [b'"' + b"x" * 100_000 + b'"', b" " * 100_000])  # more than an hour
def test_an_answer_that_drips_is_cut_by_the_deadline(host: CannedHost, body: bytes) -> None:
    host.answers = [Canned(body=body, drip=0.05)]
    with pytest.raises(GitUnavailable, match=r"took longer than 0\.5 s"):
        api(host, times=ApiTimes(connect=PATIENCE, read=PATIENCE, total=0.5)).get("a")


# --- secrets


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429, 500])
def test_nothing_that_the_host_says_is_shown(host: CannedHost, status: int) -> None:
    host.answers = [Canned.of({"message": f"no {CANARY}", "error": CANARY, "errors": [{"message": CANARY[:9]}]}, status)] * 2
    with pytest.raises(AnnealError) as refused:
        api(host).get("a")
    assert "canary" not in f"{refused.value} {refused.value!r} {refused.value.__cause__} {refused.value.__context__}"


# --- pauses


def reset(seconds: float) -> str:
    return str(int((NOW + timedelta(seconds=seconds)).timestamp()))


DATE = {"Date": format_datetime(NOW, usegmt=True)}
EMPTY = {"X-RateLimit-Remaining": "0"}
LIMITED = {"message": "You have exceeded a secondary rate limit"}


@pytest.mark.parametrize(
    ("status", "headers", "document", "pause"),
    [
        (429, {"Retry-After": "30"}, {}, 30),
        (403, {"Retry-After": "30"}, {}, 30),
        (503, {"Retry-After": "30"}, {}, 30),
        (429, {"Retry-After": "0"}, {}, 1),
        (429, {"Retry-After": " 7 "}, {}, 7),
        (429, {"Retry-After": "9" * 400}, {}, 3600),
        (429, {"Retry-After": "86400"}, {}, 3600),
        (429, {**DATE, "Retry-After": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, {}, 90),
        (429, {**DATE, "Retry-After": format_datetime(NOW - timedelta(seconds=90), usegmt=True)}, {}, 1),
        (429, {"Retry-After": "soon"}, {}, 60),
        (429, {"Retry-After": "-5"}, {}, 60),
        (429, {"Retry-After": "1.5"}, {}, 60),
        (429, {"Retry-After": "Mon, 01 Jan 99999 00:00:00 GMT"}, {}, 60),
        (429, {}, {}, 60),
        (403, {}, LIMITED, 60),
        (403, {**DATE, **EMPTY, "X-RateLimit-Reset": reset(600)}, {}, 600),
        (429, {**DATE, **EMPTY, "X-RateLimit-Reset": reset(-600)}, {}, 1),
        (429, {**DATE, **EMPTY, "X-RateLimit-Reset": reset(600), "Retry-After": "5"}, {}, 5),
        (429, {**DATE, **EMPTY, "X-RateLimit-Reset": "later"}, {}, 60),
        (403, EMPTY, {}, 60),
    ],
)
def test_a_host_that_asks_for_a_pause_gets_it(host: CannedHost, status: int, headers: dict[str, str], document: Any, pause: float) -> None:
    host.answers = [Canned.of(document, status, **headers)]
    with pytest.raises(HostBusy) as busy:
        api(host).send("POST", "a", {})
    assert busy.value.pause == pause
    assert str(busy.value).endswith(f"; again in {pause:.0f} s")


@pytest.mark.parametrize(
    ("status", "headers", "error"),
    [
        (403, {"X-RateLimit-Remaining": "17", "X-RateLimit-Reset": reset(600)}, AccessDenied),
        (400, {"Retry-After": "30"}, HostRefusal),
        (500, {"Retry-After": "30"}, GitUnavailable),
        (503, {}, GitUnavailable),
    ],
)
def test_what_is_no_limit_is_no_pause(host: CannedHost, status: int, headers: dict[str, str], error: type[AnnealError]) -> None:
    host.answers = [Canned(status, headers=headers)]
    with pytest.raises(error) as raised:
        api(host).get("a")
    assert not isinstance(raised.value, HostBusy)


# --- writes that may have arrived


def test_a_write_over_a_connection_that_was_closed_while_idle_is_sent_again(host: CannedHost) -> None:
    asked = api(host)
    asked.get("a")
    host.answers = [Canned(cut=True), Canned.of({"id": 1})]
    assert asked.send("POST", "b", {}) == {"id": 1}


@pytest.mark.parametrize(("method", "times"), [("POST", 1), ("PATCH", 1), ("GET", 2)])
def test_a_write_that_may_have_arrived_is_not_sent_again(host: CannedHost, method: str, times: int) -> None:
    host.answers = [Canned(cut=True)]
    with pytest.raises(GitUnavailable):
        api(host).send(method, "comments", None if method == "GET" else {})
    assert len(host.came) == times


class Counted(WritePace):
    """Counts those that wait for their turn."""

    waited = 0

    def wait(self) -> None:
        self.waited += 1


def test_writes_wait_for_their_turn_and_questions_dont(host: CannedHost) -> None:
    pace = Counted(0.0)
    asked = api(host, times=replace(PATIENT, pace=pace))
    asked.get("a")
    for method in ("POST", "PATCH", "PUT"):
        asked.send(method, "a", {})
    assert pace.waited == 3


def test_writes_keep_their_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [100.0], list[float]()
    monkeypatch.setattr("handler.source.host_api.time.monotonic", lambda: now[0])
    monkeypatch.setattr("handler.source.host_api.time.sleep", slept.append)
    pace = WritePace(1.0)
    for seconds in (0.0, 0.25, 5.0):
        now[0] += seconds
        pace.wait()
    assert slept == [0.0, 0.75, 0.0]
