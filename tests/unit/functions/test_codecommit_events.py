"""CodeCommit's events as the function takes them: decided as deliveries over HTTP are, and sent again where the queue takes nothing."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.functions.codecommit_events import CodeCommitEvents
from handler.queues.sqs_client import QueueUnavailable
from handler.triggers import codecommit
from handler.web.delivery_decision import watch
from tests.fakes.aws_events import Context
from tests.fakes.feedback import AtOnce
from tests.fakes.signed_webhooks import Kept
from tests.unit.rows import each_row
from tests.unit.triggers.codecommit_events import HTTPS, sample

SHOP = Repository(HTTPS)
TARGETS = (
    Target("prod", SHOP, ("shop",)),
    Target("paused", SHOP, ("shop",), suspend=True),
    Target("other", Repository(f"{HTTPS}-2"), ("x",)),
)


def told(event: Any, queue: Any, lines: list[Any]) -> dict[str, Any]:
    events = AtOnce("log")
    events.add("emf", lambda line: lines.append(json.loads(line)))
    door = CodeCommitEvents("codecommit", codecommit.read, watch(TARGETS), queue, events)
    return door(event, Context())


def test_a_push_runs_the_targets_of_its_repository_and_says_why_the_others_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "anneal.delivery")
    queue, lines = Kept(), list[Any]()
    assert told(sample(), queue, lines) == {
        "matched": [{"target": "prod", "run": "r1"}],
        "ignored": [{"target": "paused", "reason": "suspended in the configuration"}],
    }
    (job,) = queue.jobs
    assert (job.trigger, job.actor, job.deliveries[0].provider) == ("push", "user/ann", "codecommit")
    assert [(line["provider"], line["outcome"]) for line in lines] == [("codecommit", "matched")]
    (record,) = caplog.records
    assert vars(record)["fields"]["runs"] == {"prod": "r1"}


@each_row(
    ("event", "outcome", "code"),
    [(sample("pull-request"), "ignored", None), (sample("branch-deleted"), "ignored", None), ({"source": []}, "refused", "bad-payload")],
)
def test_a_codecommit_event_that_asks_for_nothing_is_acknowledged(event: Any, outcome: str, code: str | None) -> None:
    queue, lines = Kept(), list[Any]()
    assert told(event, queue, lines)["matched"] == []
    assert queue.jobs == []
    assert [(line["outcome"], line.get("code")) for line in lines] == [(outcome, code)]


def test_a_queue_that_takes_nothing_is_an_error_so_that_the_bus_tells_it_again() -> None:
    class Away(Kept):
        def put_all(self, jobs: Any) -> tuple[str, ...]:
            raise QueueUnavailable.of("queue", "isn't reached")

    with pytest.raises(QueueUnavailable):
        told(sample(), Away(), [])
