"""A worker's end of a shared queue for tests: a consumer of a queue of AWS' text, handing on to a worker that only keeps what it gets."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from handler.model.event import Delivery, Job
from handler.model.result import Outcome, Result
from handler.queues.pending import Work
from handler.queues.sqs import SqsQueue
from handler.worker import sqs_consumer
from handler.worker.sqs_consumer import SqsConsumer
from tests.fakes.sqs_fifo import Fifo

SHA = "a" * 40
NAMES = (*(f"t{number}" for number in range(60)), "shop", "shop-prod", "infra")


@dataclass
class Side:
    """A consumer of a queue of AWS' text, with a worker that only keeps what it is handed. Time moves when the test says so."""

    now: float = 0.0
    works: list[Work] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    resting: set[str] = field(default_factory=set)
    changed: threading.Condition = field(default_factory=threading.Condition)
    threads: int = 4

    def __post_init__(self) -> None:
        self.dead = Fifo("dead.fifo", lambda: self.now)
        self.fifo = Polled(now=lambda: self.now, dead=self.dead)
        self.sqs = SqsQueue(self.fifo.url, self.fifo)
        self.consumer = self.made()

    def made(self) -> SqsConsumer:
        return SqsConsumer(self.sqs, NAMES, self.threads, self._take, lambda: tuple(self.busy), lambda: tuple(self.resting))

    def _take(self, work: Work) -> None:
        with self.changed:
            self.works.append(work)
            self.changed.notify_all()

    def push(self, target: str, delivery: str, **more: Any) -> str:
        heard = Delivery(delivery, "github", "refs/heads/main", SHA, "ada", "t")
        return self.sqs.put(Job(target, "push", hint=SHA, deliveries=(heard,), **more))

    def ask(self, target: str, **more: Any) -> str:
        return self.sqs.put(Job(target, "replay", actor="ops", **more))

    def poll(self) -> None:
        """Receive once, as the thread does."""
        if most := self.consumer._room():
            self.consumer._received(self.sqs.receive(most, 0, sqs_consumer.VISIBLE))

    def end(self, work: Work, outcome: Outcome = Outcome.APPLIED, *, recorded: bool = True, cut: bool = False, code: str = "") -> None:
        self.busy.discard(work.job.target)
        self.consumer.ended(work, Result(work.job.target, outcome, recorded=recorded, code=code), cut=cut)

    @property
    def handed(self) -> list[str]:
        return [work.run for work in self.works]


class Polled(Fifo):
    """A FIFO queue whose long polls end at once where a test lets a real thread ask, without turning."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.polled = threading.Semaphore(0)

    def receive_message(self, *arguments: Any, **more: Any) -> dict[str, Any]:
        answer = super().receive_message(*arguments, **more)
        self.polled.release()
        if not answer:
            threading.Event().wait(0.01)
        return answer
