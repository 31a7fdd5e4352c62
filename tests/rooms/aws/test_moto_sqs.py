"""moto's queue keeps what AWS's does where several poll at once: a message that is worked on isn't taken from who has it."""

from __future__ import annotations

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from moto.sqs import models

from infra.moto import ACCOUNT, CHANGES, REGION, one_at_a_time

MESSAGES, POLLERS = 20, 4


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> models.SQSBackend:
    """A queue whose messages are dead letters after one try, of a backend that is slow between the counting of a message and its hiding."""
    real = models.Message.change_visibility

    def slow(message: models.Message, seconds: int) -> None:
        threading.Event().wait(0.01)
        real(message, seconds)

    monkeypatch.setattr(models.Message, "change_visibility", slow)
    for name in (*CHANGES, "receive_message"):  # put back at the end
        monkeypatch.setattr(models.SQSBackend, name, getattr(models.SQSBackend, name))
    one_at_a_time(models.SQSBackend)
    made: models.SQSBackend = models.sqs_backends[ACCOUNT][REGION]
    made.reset()
    made.create_queue("dead.fifo", None, FifoQueue="true")
    policy = json.dumps({"deadLetterTargetArn": made.get_queue("dead.fifo").queue_arn, "maxReceiveCount": 1})
    made.create_queue("jobs.fifo", None, FifoQueue="true", RedrivePolicy=policy)
    return made


def test_a_message_is_handed_to_one_poll_alone_and_never_a_dead_letter_for_it(backend: models.SQSBackend) -> None:
    for number in range(MESSAGES):
        backend.send_message("jobs.fifo", str(number), deduplication_id=str(number), group_id=str(number))

    def work(_: int) -> list[str]:
        done: list[str] = []
        while found := backend.receive_message("jobs.fifo", 2, 0, 600):
            for each in found:
                backend.delete_message("jobs.fifo", str(each.receipt_handle))
                done.append(each.body)
        return done

    with ThreadPoolExecutor(POLLERS) as pool:
        handed = Counter(body for done in pool.map(work, range(POLLERS)) for body in done)
    assert handed == Counter(map(str, range(MESSAGES)))
    assert (backend.get_queue("jobs.fifo").messages, backend.get_queue("dead.fifo").messages) == ([], [])


def test_a_long_poll_holds_up_no_other_request(backend: models.SQSBackend) -> None:
    with ThreadPoolExecutor(1) as pool:
        polled = pool.submit(backend.receive_message, "jobs.fifo", 1, 20, 600)
        backend.send_message("jobs.fifo", "late", deduplication_id="late", group_id="late")
        assert [each.body for each in polled.result()] == ["late"]
