"""Runs that are killed at a request of their choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.unit.engine.in_memory_cluster import InMemoryCluster


class Killed(BaseException):
    """The process is gone: nothing of it goes on."""


@dataclass
class Death:
    """Kills the process at its call with this number, once that is done or just before; whatever it still sends is never done."""

    number: int
    done: bool
    count: int = 0
    dead: bool = False

    def __call__(self, call: Call, do: Callable[[], Reply]) -> Reply:
        if self.dead:
            raise Killed
        if call.asked.method != "GET":
            self.count += 1
        if self.count == self.number and call.asked.method != "GET":
            self.dead = True
            if self.done:
                do()
            raise Killed
        return do()


def killed(fake: InMemoryCluster, number: int, *, done: bool) -> bool:
    """Run, and die; False: the run had ended before."""
    death = Death(number, done)
    fake.meet = death
    try:
        fake.run()
    except Killed:
        pass
    finally:
        fake.meet = straight
        fake.free_lease()
    return death.dead
