"""The entry points: put together at the first event, again after a failure, from the secrets of their own task alone."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from handler.app.tables import Tables
from handler.config.load import load
from handler.config.settings import Settings
from handler.functions import bootstrap
from handler.queues.sqs import Received, SqsQueue
from handler.queues.sqs_client import QueueUnavailable
from handler.triggers import TRIGGERS
from tests.fakes import aws_events
from tests.fakes.aws_events import Context
from tests.fakes.signed_webhooks import SECRETS, github_headers, github_push
from tests.unit.functions.conftest import CONFIG, QUEUE

HEALTH = aws_events.function_url("GET", "/healthz", {})
PING = github_push()
Printed = Callable[[], list[Any]]


def health(functions: ModuleType, name: str = "webhook") -> int:
    return int(getattr(functions, name)(HEALTH, Context())["statusCode"])


def test_a_function_is_made_once_and_at_its_first_event(functions: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB", SECRETS["GITHUB"])
    made: list[Any] = []

    def counted(path: Path) -> Settings:
        made.append(path)
        return load(path)

    monkeypatch.setattr(bootstrap, "load", counted)
    assert [health(functions), health(functions), len(made)] == [200, 200, 1]


def test_a_function_that_cant_start_says_why_and_tries_at_the_next_event(
    functions: ModuleType, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    answer = functions.webhook(HEALTH, Context())
    assert (answer["statusCode"], json.loads(answer["body"])["code"]) == (503, "not-started")
    (line,) = printed()
    assert (line["level"], line["function"]) == ("error", "webhook")
    assert "environment variable GITHUB is not set" in line["seen"]
    assert "GITHUB" not in answer["body"]
    monkeypatch.setenv("GITHUB", SECRETS["GITHUB"])
    assert health(functions) == 200


@pytest.mark.parametrize(("name", "secret"), [("webhook", "GITHUB"), ("api", "ALL")])
def test_a_door_needs_its_own_secrets_alone(functions: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str, secret: str) -> None:
    monkeypatch.setenv(secret, SECRETS[secret])
    assert health(functions, name) == 200


@pytest.mark.parametrize(("name", "told"), [("worker", "environment variable GIT is not set"), ("tick", ""), ("codecommit", "")])
def test_scheduled_and_queue_functions_raise_the_error_that_keeps_them_from_starting(
    functions: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    if not told:
        monkeypatch.delenv("ANNEAL_QUEUE_URL")
        told = "none is configured, and a function has no other memory; set ANNEAL_QUEUE_URL or `queue.sqs.url`"
    for _ in range(2):
        with pytest.raises(functions.Unstarted, match=told) as raised:
            getattr(functions, name)({}, Context())
        assert raised.value.__cause__ is raised.value.__context__ is None


@pytest.mark.parametrize(("times", "seconds"), [(1, 60), (3, 240), (9, 1200)])
def test_the_messages_of_a_worker_that_cant_start_come_again_soon_and_then_later(
    functions: ModuleType, monkeypatch: pytest.MonkeyPatch, times: int, seconds: int
) -> None:
    told: list[tuple[str, str, float]] = []

    def postpone(queue: SqsQueue, messages: list[Received], seconds: float) -> None:
        told.extend((queue.url, each.id, seconds) for each in messages)

    monkeypatch.setattr(SqsQueue, "postpone", postpone)
    event = aws_events.messages("whatever it asks", times=times)
    with pytest.raises(functions.Unstarted, match="environment variable GIT is not set"):
        functions.worker(event, Context())
    assert told == [(QUEUE, event["Records"][0]["messageId"], seconds)]


def test_an_unreachable_queue_doesnt_hide_the_error_of_the_start(
    functions: ModuleType, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    def away(*_: object) -> None:
        raise QueueUnavailable.of("queue", "isn't reached")

    monkeypatch.setattr(SqsQueue, "postpone", away)
    with pytest.raises(functions.Unstarted, match="environment variable GIT is not set"):
        functions.worker(aws_events.messages("whatever it asks"), Context())
    assert [line["message"] for line in printed()] == ["the function can't start", "messages aren't postponed"]


def test_an_unexpected_exception_is_logged_by_its_trace_without_its_text(
    functions: ModuleType, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    def broken(_path: object) -> None:
        raise ValueError(f"can't use {SECRETS['GITHUB']}")

    monkeypatch.setattr(bootstrap, "load", broken)
    assert health(functions) == 503
    (line,) = printed()
    assert line["seen"].startswith("ValueError at tests/unit/functions/test_functions.py:")
    with pytest.raises(functions.Unstarted) as raised:
        functions.worker({}, Context())
    assert SECRETS["GITHUB"] not in f"{line} {raised.value} {raised.value.__context__}"


def test_a_configuration_that_isnt_there_is_named(functions: ModuleType, monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.delenv("ANNEAL_CONFIG")
    assert health(functions) == 503
    assert "anneal.yaml" in printed()[0]["seen"]


def test_the_log_is_lines_of_json_on_standard_output_whatever_the_runtime_had_set(
    functions: ModuleType, monkeypatch: pytest.MonkeyPatch, printed: Printed, root_logger: logging.Logger
) -> None:
    root_logger.handlers[:] = [logging.StreamHandler(sys.stdout)]
    root_logger.setLevel(logging.WARNING)
    monkeypatch.setenv("GITHUB", SECRETS["GITHUB"])
    wrong = github_headers(PING, "another-secret-0123456")
    assert functions.webhook(aws_events.function_url("POST", "/webhooks/github", wrong, PING), Context())["statusCode"] == 401
    metric, line = sorted(printed(), key=lambda each: "_aws" not in each)
    assert (line["message"], line["logger"], line["code"]) == ("delivery refused", "anneal.delivery", "bad-signature")
    assert metric["anneal_deliveries"] == 1
    logging.getLogger("of.a.library").info("the secret is %s", SECRETS["GITHUB"])
    assert printed()[0]["message"] == "the secret is %s"


def test_functions_of_a_program_of_its_own_know_its_tables(
    functions: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    place = tmp_path / "added.yaml"
    place.write_text(json.dumps({**CONFIG, "webhooks": {"acme": {"secrets": [{"env": "GITHUB"}]}}}))
    monkeypatch.setenv("ANNEAL_CONFIG", str(place))
    monkeypatch.setenv("GITHUB", SECRETS["GITHUB"])
    unsigned = aws_events.function_url("POST", "/webhooks/acme", github_headers(PING, "another-secret-0123456"), PING)
    acme = functions.Functions(lambda: Tables(triggers={**TRIGGERS, "acme": TRIGGERS["github"]}))
    assert acme.webhook(unsigned, Context())["statusCode"] == 401
    assert functions.Functions().webhook(unsigned, Context())["statusCode"] == 503
    assert "webhooks.acme: unknown key" in printed()[-1]["seen"]
