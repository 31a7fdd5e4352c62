"""A queue with its dead letters, and a request for it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from handler.model.event import Job
from handler.queues import message
from handler.queues.dead_letters import DeadLetters
from handler.queues.pending import Work
from handler.queues.sqs import SqsEntry, SqsQueue
from tests.fakes.sqs_fifo import Fifo


@dataclass
class Queues:
    """A queue and its dead letters, on one clock."""

    now: float = 0.0
    main: Fifo = field(init=False)

    def __post_init__(self) -> None:
        dead = Fifo("anneal-dead.fifo", lambda: self.now)
        self.main = Fifo(now=lambda: self.now, dead=dead, most_receives=1)
        self.sqs = SqsQueue(self.main.url, self.main)

    def die(self, *bodies: str, group: str = "") -> None:
        """Let messages be handed out once too often."""
        for number, body in enumerate(bodies):
            target = group or json.loads(body)["target"]
            self.sqs.send([SqsEntry(body, target, f"{number}-{body[:100]}-{self.now}")])
        for _ in bodies:
            self.sqs.receive(10, 0, 1)
            self.now += 2.0
        self.sqs.receive(10, 0, 1)

    @property
    def dead(self) -> Fifo:
        assert self.main.dead
        return self.main.dead

    @property
    def letters(self) -> DeadLetters:
        return DeadLetters(self.sqs)


def asks(target: str, number: int = 0) -> str:
    return message.encode(Work(Job(target, "replay", actor="ops"), (f"{target}.{number:012x}",)))
