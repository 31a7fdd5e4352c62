"""The functions and a queue of Amazon's, as far as moto plays it: what each of them puts there, and what becomes of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import boto3
import pytest

from handler.queues import message
from infra.moto import Moto
from tests.fakes import aws_events
from tests.fakes.aws_events import Context
from tests.fakes.signed_webhooks import SECRETS, github_headers, github_push
from tests.unit.functions.conftest import functions, printed, root_logger
from tests.unit.triggers.codecommit_events import sample

__all__ = ["functions", "printed", "root_logger"]
TOKEN = {"Authorization": f"Bearer {SECRETS['ALL']}"}


@pytest.fixture
def waiting(aws: Moto, functions: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Any]]:
    """What waits in the queue, as jobs."""
    client = boto3.client("sqs", **aws.client)
    url = client.create_queue(QueueName="anneal.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    monkeypatch.setenv("ANNEAL_QUEUE_URL", url)
    for name in ("GITHUB", "ALL"):
        monkeypatch.setenv(name, SECRETS[name])

    def received() -> list[Any]:
        found = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        return [message.decode(each["Body"]).job for each in found]

    return received


def test_a_push_waits_in_the_queue_once_however_often_it_is_delivered(functions: ModuleType, waiting: Callable[[], list[Any]]) -> None:
    push = github_push()
    event = aws_events.function_url("POST", "/webhooks/github", github_headers(push), push, encoded=True)
    told = [json.loads(functions.webhook(event, Context())["body"])["run"] for _ in range(2)]
    (job,) = waiting()
    assert (job.target, job.trigger, job.actor, job.deliveries[0].ref) == ("shop-prod", "push", "ada", "refs/heads/main")
    assert told[0] == told[1]


def test_a_queue_that_isnt_there_is_answered_503(functions: ModuleType, waiting: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANNEAL_QUEUE_URL", os.environ["ANNEAL_QUEUE_URL"].replace("anneal.fifo", "gone.fifo"))
    push = github_push()
    answer = functions.webhook(aws_events.function_url("POST", "/webhooks/github", github_headers(push), push), Context())
    assert (answer["statusCode"], json.loads(answer["body"])["code"]) == (503, "queue-unavailable")


def test_a_replay_waits_in_the_queue_and_its_run_is_unknown_until_it_is_recorded(
    functions: ModuleType, waiting: Callable[[], list[Any]]
) -> None:
    asked = json.loads(functions.api(aws_events.rest("POST", "/replay/shop-prod", TOKEN), Context())["body"])
    (job,) = waiting()
    assert (job.trigger, job.actor) == ("replay", "all")
    answer = functions.api(aws_events.rest("GET", f"/api/runs/{asked['run']}", TOKEN), Context())
    assert answer["statusCode"] == 503, "no cluster can be asked here, and that is no end either"


def test_a_codecommit_event_is_put_into_the_queue(
    functions: ModuleType, waiting: Callable[[], list[Any]], printed: Callable[[], list[Any]]
) -> None:
    answer = functions.codecommit(sample(), Context())
    (job,) = waiting()
    assert (job.target, job.trigger, job.actor) == ("shop-prod", "push", "user/ann")
    assert [each["target"] for each in answer["matched"]] == ["shop-prod"]
    assert functions.codecommit(sample("branch-created"), Context())["matched"] == []
    assert functions.codecommit({"source": 1}, Context())["code"] == "bad-payload"
    lines = [each for each in printed() if "_aws" in each]
    assert [(each["provider"], each["outcome"]) for each in lines] == [
        ("codecommit", "matched"),
        ("codecommit", "ignored"),
        ("codecommit", "refused"),
    ]


def test_a_minute_puts_ticks_into_the_queue_though_no_cluster_answers(
    functions: ModuleType, waiting: Callable[[], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/kubeconfig")
    found = [functions.tick(aws_events.every_minute(f"2026-03-01T12:{number:02}:00Z"), Context()) for number in range(5)]
    assert [each["ticks"] for each in found].count(1) == 2, "two events ask for each moment, and the queue knows it the second time"
    assert [job.trigger in ("tick", "drift") for job in waiting()] == [True]
    assert all("shop-prod" in each["unread"] for each in found if not each["ticks"])
