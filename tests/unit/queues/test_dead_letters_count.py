"""Dead letters are counted for an alert; what keeps them from being counted is said once."""

from __future__ import annotations

import logging

import pytest

from handler.queues.dead_letters import DeadLetterCount
from handler.queues.sqs import SqsQueue
from tests.fakes.sqs_fifo import Fifo
from tests.unit.queues.dead_letter_queues import Queues, asks


def test_dead_letters_are_counted() -> None:
    queues, found = Queues(), list[tuple[str, int]]()
    count = DeadLetterCount(queues.sqs, lambda name, number: found.append((name, number)))
    count.count()
    queues.die(asks("shop"), asks("site"))
    count.count()
    assert found == [("anneal-dead.fifo", 0), ("anneal-dead.fifo", 2)]


def test_without_a_dead_letter_queue_that_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    queue = Fifo(now=lambda: 0.0)
    count = DeadLetterCount(SqsQueue(queue.url, queue), lambda *_: pytest.fail("nothing was counted"))
    with caplog.at_level(logging.WARNING):
        count.count()
        count.count()
    assert [record.message for record in caplog.records] == ["dead letters aren't counted"]
