"""Plans of pull requests on a FIFO queue: each is a group of its own, beside its lead's, and each wish is a message."""

from __future__ import annotations

import re

from handler.model.event import Job
from handler.queues import message
from handler.queues.sqs import SqsQueue
from tests.fakes.sqs_fifo import Fifo

PLAN = Job("shop~12", "pull-request", comments=("6",), actor="ada")


class Sent(Fifo):
    """A queue that keeps the rows as they were sent."""

    rows: list[dict[str, str]]

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, object]:  # noqa: N803 - AWS' names
        self.rows = Entries
        return super().send_message_batch(QueueUrl, Entries)


def test_a_plan_is_a_group_of_its_own_by_a_name_that_aws_takes() -> None:
    fifo = Sent()
    runs = SqsQueue(fifo.url, fifo).put_all(
        (PLAN, Job("shop~13", "pull-request"), Job("shop", "push"), Job("a" * 56 + "~999999999", "pull-request"))
    )
    assert [row["MessageGroupId"] for row in fifo.rows] == ["shop~12", "shop~13", "shop", "a" * 56 + "~999999999"]
    for row in fifo.rows:
        for part in ("MessageGroupId", "MessageDeduplicationId"):
            assert re.fullmatch(r"[A-Za-z0-9!-/:-@\[-`{-~]{1,128}", row[part]), "alphanumeric characters and punctuation, says AWS"
    assert len({row["MessageDeduplicationId"] for row in fifo.rows}) == 4
    assert [message.decode(row["MessageBody"]).runs for row in fifo.rows] == [(run,) for run in runs]
    assert [run.rpartition(".")[0] for run in runs] == [row["MessageGroupId"] for row in fifo.rows]


def test_a_plan_that_is_made_keeps_neither_its_lead_nor_another_plan_from_other_workers() -> None:
    fifo = Fifo()
    queue = SqsQueue(fifo.url, fifo)
    queue.put_all((PLAN, PLAN))
    (held,) = queue.receive(1, 0, 60)
    assert (held.group, message.decode(held.body).job) == ("shop~12", PLAN)
    queue.put_all((Job("shop", "push"), Job("shop~13", "pull-request")))
    assert [each.group for each in queue.receive(10, 0, 60)] == ["shop", "shop~13"], (
        "the second wish for its plan waits for the first's end"
    )
    assert queue.delete([held]) == ()
    (next_one,) = queue.receive(10, 0, 60)
    assert next_one.group == "shop~12"


def test_two_wishes_for_a_plan_are_two_messages_and_one_that_is_sent_again_is_one() -> None:
    fifo = Fifo()
    queue = SqsQueue(fifo.url, fifo)
    assert queue.put(PLAN) != queue.put(PLAN)
    assert len(fifo.messages) == 2
    known = Job("shop~12", "pull-request", run="shop~12.0123456789ab")
    assert queue.put(known) == queue.put(known) == known.run
    assert len(fifo.messages) == 3
