"""Plans of pull requests on a FIFO queue: they share a few groups, beside those of targets, and each wish is a message."""

from __future__ import annotations

import re

from handler.model.event import Job
from handler.queues import message
from handler.queues.sqs import Received, SqsQueue
from tests.fakes.sqs_fifo import Fifo

PLAN = Job("shop~12", "pull-request", comments=("6",), actor="ada")


class Sent(Fifo):
    """A queue that keeps the rows as they were sent."""

    rows: list[dict[str, str]]

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, object]:  # noqa: N803 - AWS' names
        self.rows = Entries
        return super().send_message_batch(QueueUrl, Entries)


def test_plans_share_groups_by_names_that_aws_takes() -> None:
    fifo = Sent()
    runs = SqsQueue(fifo.url, fifo).put_all(
        (PLAN, Job("shop~13", "pull-request"), Job("shop", "push"), Job("a" * 56 + "~999999999", "pull-request"))
    )
    first, second, shop, long = (row["MessageGroupId"] for row in fifo.rows)
    assert (shop, {first, second, long} <= {"plans~0", "plans~1"}) == ("shop", True)
    for row in fifo.rows:
        for part in ("MessageGroupId", "MessageDeduplicationId"):
            assert re.fullmatch(r"[A-Za-z0-9!-/:-@\[-`{-~]{1,128}", row[part]), "alphanumeric characters and punctuation, says AWS"
    assert len({row["MessageDeduplicationId"] for row in fifo.rows}) == 4
    assert [message.decode(row["MessageBody"]).runs for row in fifo.rows] == [(run,) for run in runs]


def test_however_many_plans_there_are_they_keep_a_few_workers_and_no_target_waits_for_them() -> None:
    fifo = Fifo()
    queue = SqsQueue(fifo.url, fifo)
    plans = [Job(f"shop~{number}", "pull-request") for number in range(1, 30)]
    tried = [Job(f"cart~{number}", "pull-request", looks=1, moment=1.0) for number in range(1, 9)]
    queue.put_all((PLAN, *plans, *tried, Job("shop", "push")))
    held = list[Received]()
    while found := queue.receive(1, 0, 60):
        held += found
    assert sorted(each.group for each in held) == ["plans~0", "plans~1", "plans~2", "shop"]
    assert queue.delete(held) == ()
    assert len(queue.receive(10, 0, 60)) == 10, "the next ones come when those have ended"


def test_two_wishes_for_a_plan_are_two_messages_and_one_that_is_sent_again_is_one() -> None:
    fifo = Fifo()
    queue = SqsQueue(fifo.url, fifo)
    assert queue.put(PLAN) != queue.put(PLAN)
    assert len(fifo.messages) == 2
    known = Job("shop~12", "pull-request", run="shop~12.0123456789ab")
    assert queue.put(known) == queue.put(known) == known.run
    assert len(fifo.messages) == 3
