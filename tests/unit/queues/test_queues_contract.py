"""What every queue promises to who asks for runs: the same for memory, for the socket and for SQS, moto's and AWS' own text."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import boto3
import pytest

from handler.model.event import Delivery, Job
from handler.model.names import target_of
from handler.queues import Queue, message
from handler.queues.inbox import Inbox
from handler.queues.inline import Inline
from handler.queues.outbox import Outbox
from handler.queues.pending import Work
from handler.queues.sqs import SqsQueue
from infra.moto import Moto
from tests.fakes.sqs_fifo import Fifo
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

A, B = "a" * 40, "b" * 40
KINDS = ["inline", "outbox", pytest.param("moto", marks=pytest.mark.slow), "fifo"]


class Side(Protocol):
    """A queue, and what comes out of it."""

    queue: Queue

    def taken(self, count: int) -> list[Work]:
        """Return what comes out, in the order it comes, once there are so many requests in it."""


class Memory:
    """Inline or Outbox: what runs is kept."""

    def __init__(self, make: Callable[[Callable[[Work], None]], Queue]) -> None:
        self._works: list[Work] = []
        self._changed = threading.Condition()
        self.queue = make(self._run)

    def _run(self, work: Work) -> None:
        with self._changed:
            self._works.append(work)
            self._changed.notify_all()

    def taken(self, count: int) -> list[Work]:
        with self._changed:
            assert self._changed.wait_for(lambda: sum(len(work.runs) for work in self._works) >= count, PATIENCE), self._works
            return list(self._works)


class Service:
    """SQS: what is received is acknowledged."""

    def __init__(self, sqs: SqsQueue) -> None:
        self.queue: Queue = sqs
        self._sqs = sqs

    def taken(self, count: int) -> list[Work]:
        works: list[Work] = []
        while len(works) < count and (messages := self._sqs.receive(10, 1, 30)):
            works += [message.decode(each.body) for each in messages]
            self._sqs.delete(messages)
        return works


@pytest.fixture(params=KINDS)
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Side]:
    if request.param == "fifo":
        fifo = Fifo()
        yield Service(SqsQueue(fifo.url, fifo))
    elif request.param == "moto":
        aws: Moto = request.getfixturevalue("aws")
        client = boto3.client("sqs", **aws.client)
        yield Service(SqsQueue(client.create_queue(QueueName="anneal.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"], longest_wait=1))
    elif request.param == "inline":
        made: list[Inline] = []

        def inline(run: Callable[[Work], None]) -> Queue:
            made.append(Inline(run, threads=1))
            made[0].start()
            return made[0]

        yield Memory(inline)
        made[0].stop(PATIENCE)
    else:
        yield from _socket(tmp_path / "s")


def _socket(path: Path) -> Iterator[Side]:
    ends: list[Inbox | Outbox] = []

    def outbox(run: Callable[[Work], None]) -> Queue:
        def accept(work: Work) -> dict[str, str]:
            run(work)
            return {"run": work.run, "boot": "b"}

        inbox = Inbox(path, accept, lambda _: {"boot": "b", "known": {}})
        inbox.start()
        made = Outbox(path)
        ends.extend((made, inbox))
        return made

    yield Memory(outbox)
    for end in ends:
        if isinstance(end, Outbox):
            end.close()
        else:
            end.stop()


def pushed(target: str, hint: str = A, delivery: str = "d1") -> Job:
    heard = Delivery(delivery, "github", "refs/heads/main", hint, "ada", "2026-03-01T12:00:00Z")
    return Job(target, "push", hint=hint, actor="ada", deliveries=(heard,))


def plain(job: Job) -> Job:
    """Return a job without what only this machine's clock says."""
    return replace(job, asked=0.0)


def test_all_of_one_request_come_out_each_under_its_own_id_in_the_order_given(side: Side) -> None:
    jobs = [pushed(f"t{number}") for number in range(25)]
    runs = side.queue.put_all(jobs)
    works = {work.job.target: work for work in side.taken(25)}
    assert [target_of(run) for run in runs] == [job.target for job in jobs]
    assert {name: (plain(work.job), work.runs) for name, work in works.items()} == {
        job.target: (job, (run,)) for job, run in zip(jobs, runs, strict=True)
    }


def test_a_delivery_that_matches_no_target_puts_nothing(side: Side) -> None:
    assert side.queue.put_all([]) == ()


def test_a_branch_that_comes_back_to_a_commit_is_seen_all_three_times(side: Side) -> None:
    runs = [side.queue.put(pushed("shop", hint, delivery)) for hint, delivery in ((A, "d1"), (B, "d2"), (A, "d3"))]
    works = side.taken(3)
    assert [run for work in works for run in work.runs] == runs
    assert [each.id for work in works for each in work.job.deliveries] == ["d1", "d2", "d3"]
    assert works[-1].job.hint == A


def test_a_named_request_is_run_as_often_as_it_is_asked_and_never_as_another(side: Side) -> None:
    jobs = [
        Job("shop", "replay", commit=A, actor="ops"),
        Job("shop", "replay", unpin=True, actor="ops"),
        Job("shop", "replay", commit=A, actor="ops"),
        Job("shop", "replay", dry_run=True, force=True, actor="ci"),
    ]
    runs = [side.queue.put(job) for job in jobs]
    works = side.taken(4)
    assert [plain(work.job) for work in works] == jobs
    assert [work.named for work in works] == [(run,) for run in runs]
