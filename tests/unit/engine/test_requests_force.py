"""Force that is asked for while another run works: the holder's next round honours it, once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from handler.model.event import Job
from handler.model.result import Outcome
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.engine import state_of
from tests.unit.engine.in_memory_cluster import GROUPS, MAPS, InMemoryCluster, planted, wanted

REFUSED: Reply = (422, {"kind": "Status", "code": 422, "status": "Failure", "reason": "Invalid", "message": "no such table"}, {})


@dataclass
class Person:
    """Asks for the rollout again while one is under way, at the first write of `at`; `way`: what that write then meets."""

    town: InMemoryCluster
    at: str
    refuses: bool = False
    asked: Outcome | None = None

    def __call__(self, call: Call, do: Callable[[], Reply]) -> Reply:
        if not call.writes or call.asked.path != f"{MAPS}/{self.at}":
            return do()
        if self.asked is None:
            self.asked = Outcome.FAILED  # whatever comes now is of this very request
            second, impatient = self.town.handler(), threading.Event()
            second._holder = "second"
            impatient.set()
            self.asked = second.run(Job("shop", "replay", force=True, actor="jo"), impatient).outcome
        return REFUSED if self.refuses else do()


@pytest.fixture
def town() -> InMemoryCluster:
    made = planted()
    made.push(wanted(), *GROUPS)
    return made


def recreated(town: InMemoryCluster) -> int:
    return sum(key.startswith("anew ") for key in town.deleted)


def test_the_lease_holder_carries_out_a_forced_rollout_once(town: InMemoryCluster) -> None:
    person = town.meet = Person(town, "changed")
    result = town.run()
    assert (person.asked, result.outcome) == (Outcome.BUSY, Outcome.APPLIED), result
    assert recreated(town) == 2
    assert state_of(town.handler()).requested is None
    for trigger in ("tick", "drift"):
        assert town.run(trigger).outcome is Outcome.UNCHANGED
    assert recreated(town) == 2


def test_a_forced_rollout_that_fails_again_isnt_tried_a_third_time(town: InMemoryCluster) -> None:
    person = town.meet = Person(town, "changed", refuses=True)
    result = town.run()
    assert (person.asked, result.outcome) == (Outcome.BUSY, Outcome.FAILED), result
    assert recreated(town) == 2
    assert state_of(town.handler()).requested is None
    for trigger in ("tick", "drift"):
        assert town.run(trigger).outcome is Outcome.FAILED
    assert recreated(town) == 2


def test_a_lease_holder_that_dies_leaves_a_forced_rollout_to_the_next_run(town: InMemoryCluster) -> None:
    person = Person(town, "changed")
    stop = threading.Event()

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = person(call, do)
        if person.asked is Outcome.BUSY:
            stop.set()
        return reply

    town.meet = way
    assert town.handler().run(Job("shop", "push"), stop).outcome is Outcome.BUSY
    requested = state_of(town.handler()).requested
    assert requested
    assert requested.force
    assert town.run("tick").outcome is Outcome.APPLIED
    assert (recreated(town), state_of(town.handler()).requested) == (1, None), "what was under way is gone on with"
