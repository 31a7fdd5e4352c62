"""HTTP as events: the bytes that were signed arrive, in every form and wrapping; what is no request is answered."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from handler.functions.gateway import Answer, plain, served
from handler.functions.http_entry import TOKENS, WEBHOOKS
from handler.model.errors import AnnealError
from handler.model.event import Job
from handler.queues.sqs_client import QueueUnavailable
from handler.web.app import create_app
from tests.fakes import aws_events
from tests.fakes.aws_events import FORMS, Context, Json
from tests.fakes.feedback import AtOnce
from tests.fakes.signed_webhooks import SECRETS, Kept, door_secrets, door_settings, github_headers, github_push
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

PUSH = github_push()
PATH = "/webhooks/github"
ODD = github_push(pusher={"name": 'é \u2028 " \\ \U0001f600 \x7f', "note": "spaces  and\ttabs"})
"""What JSON may hold raw: a body that is encoded anew somewhere on its way isn't the one that was signed."""
RAW = json.dumps(json.loads(ODD), ensure_ascii=False).encode()


@pytest.fixture
def queue() -> Kept:
    return Kept()


@pytest.fixture
def lines() -> list[Any]:
    return []


@pytest.fixture
def answer(queue: Kept, lines: list[Any]) -> Answer:
    return door(queue, lines)


def door(queue: Any, lines: list[Any], routes: Any = WEBHOOKS) -> Answer:
    events = AtOnce("log")
    told = events.add("emf", lambda line: lines.append(json.loads(line)))
    return served(create_app(door_settings(), door_secrets(), queue, lambda: True, metrics=told, events=events, routes=routes))


def body(answered: Json) -> Any:
    assert answered["isBase64Encoded"] is False
    return json.loads(answered["body"])


forms = each_row("form", FORMS.values())


@forms
@each_row("encoded", [False, True])
@each_row("sent", [PUSH, ODD, RAW, PUSH + b"\n"])
def test_a_signed_push_is_taken_in_every_form(form: Callable[..., Json], encoded: bool, sent: bytes, answer: Answer, queue: Kept) -> None:
    queue.jobs.clear()
    answered = answer(form("POST", PATH, github_headers(sent), sent, encoded=encoded), Context())
    assert (answered["statusCode"], body(answered)["run"]) == (202, "r1")
    (job,) = queue.jobs
    assert (job.target, job.actor) == ("shop-prod", "ada")


@forms
def test_a_signed_body_with_one_byte_more_is_answered_401(form: Callable[..., Json], answer: Answer, queue: Kept) -> None:
    answered = answer(form("POST", PATH, github_headers(PUSH), PUSH + b" "), Context())
    assert (answered["statusCode"], body(answered)["code"], queue.jobs) == (401, "bad-signature", [])


@forms
@each_row("length", ["0", "1", "30000000", "-1", "", "x"])
def test_the_length_is_the_bodys_own(form: Callable[..., Json], length: str, answer: Answer) -> None:
    sent = {**github_headers(PUSH), "Content-Length": length}
    event = form("POST", PATH, sent, PUSH)
    for headers in ("headers", "multiValueHeaders"):
        for key in event.get(headers, {}):
            if key.lower() == "content-length":
                event[headers][key] = [length] if headers == "multiValueHeaders" else length
    assert answer(event, Context())["statusCode"] == 202


@forms
def test_a_transfer_encoding_header_of_the_gateway_is_ignored(form: Callable[..., Json], answer: Answer) -> None:
    assert answer(form("POST", PATH, {**github_headers(PUSH), "Transfer-Encoding": "chunked"}, PUSH), Context())["statusCode"] == 202


@forms
def test_without_a_body_nothing_is_signed(form: Callable[..., Json], answer: Answer) -> None:
    event = form("POST", PATH, github_headers(b""))
    event["body"] = None
    assert answer(event, Context())["statusCode"] in (400, 401)
    del event["body"], event["isBase64Encoded"]
    assert answer(event, Context())["statusCode"] in (400, 401)


def test_a_header_that_comes_twice_proves_nothing(answer: Answer, queue: Kept) -> None:
    right = github_headers(PUSH)["X-Hub-Signature-256"]
    twice = aws_events.rest("POST", PATH, github_headers(PUSH), PUSH)
    twice["multiValueHeaders"]["X-Hub-Signature-256"] = [right, right]
    joined = aws_events.function_url("POST", PATH, github_headers(PUSH) | {"X-Hub-Signature-256": f"{right},{right}"}, PUSH)
    lists = aws_events.balancer_of_lists("POST", PATH, github_headers(PUSH), PUSH)
    lists["multiValueHeaders"]["x-hub-signature-256"] = [f"sha256={'0' * 64}", right]
    assert [answer(event, Context())["statusCode"] for event in (twice, joined, lists)] == [401, 401, 401]
    assert queue.jobs == []


@forms
def test_a_body_over_the_cap_is_refused(form: Callable[..., Json], answer: Answer) -> None:
    large = b"[" + b" " * (5 * 1024 * 1024) + b"]"
    answered = answer(form("POST", PATH, github_headers(large), large, encoded=True), Context())
    assert (answered["statusCode"], body(answered)["code"]) == (413, "too-large")


@forms
def test_the_webhook_function_serves_deliveries_and_its_own_health_alone(form: Callable[..., Json], answer: Answer) -> None:
    token = {"Authorization": f"Bearer {SECRETS['ALL']}"}
    asked = [
        ("POST", "/replay/shop-prod"),
        ("GET", "/api/targets"),
        ("GET", "/metrics"),
        ("GET", "/readyz"),
        ("POST", "/webhooks/codecommit"),
    ]
    assert [answer(form(method, path, token), Context())["statusCode"] for method, path in asked] == [404] * len(asked)
    assert body(answer(form("GET", "/healthz", {}), Context())) == {"web": "ok"}


@forms
def test_the_api_function_serves_no_delivery(form: Callable[..., Json], queue: Kept) -> None:
    queue.jobs.clear()
    api = door(queue, [], TOKENS)
    assert api(form("POST", PATH, github_headers(PUSH), PUSH), Context())["statusCode"] == 404
    token = {"Authorization": f"Bearer {SECRETS['CI']}"}
    assert api(form("POST", "/replay/shop-prod", token), Context())["statusCode"] == 202
    assert queue.jobs == [Job("shop-prod", "replay", actor="ci")]


def test_metrics_are_not_served_and_who_may_read_them_is_told_why(queue: Kept, lines: list[Any]) -> None:
    api = door(queue, lines, TOKENS)
    answered = api(aws_events.function_url("GET", "/metrics", {"Authorization": f"Bearer {SECRETS['SCRAPER']}"}), Context())
    assert answered["statusCode"] == 404
    assert "namespace Anneal" in body(answered)["error"]
    assert api(aws_events.function_url("GET", "/metrics", {}), Context())["statusCode"] == 401
    assert [(line["route"], line["anneal_token_failures"]) for line in lines] == [("/metrics", 1)]


@forms
def test_the_query_string_reaches_the_app(form: Callable[..., Json], queue: Kept) -> None:
    answered = door(queue, [], TOKENS)(form("GET", "/api/targets?limit=x", {"Authorization": f"Bearer {SECRETS['ALL']}"}), Context())
    assert (answered["statusCode"], body(answered)["code"]) == (400, "bad-payload")


class Away(Kept):
    """A queue that can't be reached."""

    def put_all(self, jobs: Any) -> tuple[str, ...]:
        refusal: AnnealError = QueueUnavailable.of("queue anneal.fifo", "isn't reached", fix="try again")
        refusal.add_note("with the account's number")
        raise refusal


@forms
def test_without_its_queue_a_delivery_is_answered_503(form: Callable[..., Json]) -> None:
    answered = door(Away(), [])(form("POST", PATH, github_headers(PUSH), PUSH), Context())
    assert (answered["statusCode"], body(answered)["code"]) == (503, "queue-unavailable")
    assert "account" not in answered["body"]


def test_each_delivery_is_a_line_and_so_is_each_refusal(answer: Answer, lines: list[Any]) -> None:
    for sent in (PUSH, github_push(ref="refs/heads/other")):
        answer(aws_events.function_url("POST", PATH, github_headers(sent), sent), Context())
    answer(aws_events.function_url("POST", PATH, github_headers(PUSH, "wrong-secret-wrong-secret"), PUSH), Context())
    assert [(line["provider"], line["outcome"], line.get("code")) for line in lines] == [
        ("github", "matched", None),
        ("github", "ignored", None),
        ("github", "refused", "bad-signature"),
    ]


@each_row(
    "event",
    [
        None,
        [],
        "x",
        {},
        {"version": "3.0"},
        {"version": "2.0"},
        {"version": "2.0", "requestContext": None},
        {"version": "2.0", "requestContext": {"stage": "live"}},
        aws_events.every_minute(),
        aws_events.messages("{}"),
        aws_events.function_url("POST", PATH, {}) | {"body": 1},
        aws_events.function_url("POST", PATH, {}) | {"body": "é", "isBase64Encoded": True},
        aws_events.function_url("POST", PATH, {}) | {"body": "a", "isBase64Encoded": True},
        aws_events.function_url("POST", PATH, {}) | {"headers": {"x": None}},
        aws_events.rest("POST", PATH, {}) | {"multiValueHeaders": {"x": None}},
        aws_events.rest("POST", PATH, {}) | {"path": None},
    ],
)
def test_a_malformed_gateway_event_is_answered(event: Any, answer: Answer) -> None:
    assert answer(event, Context())["statusCode"] in (400, 401, 415)


@forms
@each_row("value", [None, 5, {"a": "b"}, [None], [["a"]]])
def test_a_header_that_is_no_text_is_no_header(form: Callable[..., Json], value: Any, answer: Answer) -> None:
    event = form("POST", PATH, github_headers(PUSH), PUSH)
    key = "multiValueHeaders" if event.get("multiValueHeaders") else "headers"
    event[key] = {**event[key], "x-odd": value}
    assert answer(event, Context())["statusCode"] == 400


@forms
@each_row(("path", "name", "sent"), [("", "", ""), ("é\ud800", "é", "\ud800"), ("//x?\0%", "a b", "\0"), ("/\r\n", "\r\n", "{")])
def test_no_text_anywhere_ends_the_function(path: str, name: str, sent: str, form: Callable[..., Json], answer: Answer) -> None:
    event = form("POST", "/webhooks/github", {name: sent}) | {"body": sent}
    for key in ("rawPath", "path"):
        if key in event:
            event[key] = path or "/"
    assert 400 <= answer(event, Context())["statusCode"] < 500


def test_an_answer_of_ours_has_one_form_everywhere() -> None:
    answered = plain(503, "not-started", "why")
    assert body(answered) == {"matched": [], "ignored": [], "run": None, "code": "not-started", "error": "why"}
    assert answered["headers"]["Content-Type"] == answered["multiValueHeaders"]["Content-Type"][0] == "application/json"
