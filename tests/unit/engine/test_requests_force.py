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

pytestmark = pytest.mark.slow

REFUSED: Reply = (422, {"kind": "Status", "code": 422, "status": "Failure", "reason": "Invalid", "message": "no such table"}, {})


@dataclass
class Person:
    """Asks for the rollout again while one is under way, at the first write of `at`; `way`: what that write then meets."""

    fake: InMemoryCluster
    at: str
    refuses: bool = False
    asked: Outcome | None = None

    def __call__(self, call: Call, do: Callable[[], Reply]) -> Reply:
        if not call.writes or call.asked.path != f"{MAPS}/{self.at}":
            return do()
        if self.asked is None:
            self.asked = Outcome.FAILED  # whatever comes now is of this very request
            second, impatient = self.fake.handler(), threading.Event()
            second._holder = "second"
            impatient.set()
            self.asked = second.run(Job("shop", "replay", force=True, actor="jo"), impatient).outcome
        return REFUSED if self.refuses else do()


@pytest.fixture
def fake() -> InMemoryCluster:
    made = planted()
    made.push(wanted(), *GROUPS)
    return made


def recreated(fake: InMemoryCluster) -> int:
    return sum(key.startswith("anew ") for key in fake.deleted)


def test_the_lease_holder_carries_out_a_forced_rollout_once(fake: InMemoryCluster) -> None:
    person = fake.meet = Person(fake, "changed")
    result = fake.run()
    assert (person.asked, result.outcome) == (Outcome.BUSY, Outcome.APPLIED), result
    assert recreated(fake) == 2
    assert state_of(fake.handler()).requested is None
    for trigger in ("tick", "drift"):
        assert fake.run(trigger).outcome is Outcome.UNCHANGED
    assert recreated(fake) == 2


def test_a_forced_rollout_that_fails_again_isnt_tried_a_third_time(fake: InMemoryCluster) -> None:
    person = fake.meet = Person(fake, "changed", refuses=True)
    result = fake.run()
    assert (person.asked, result.outcome) == (Outcome.BUSY, Outcome.FAILED), result
    assert recreated(fake) == 2
    assert state_of(fake.handler()).requested is None
    for trigger in ("tick", "drift"):
        assert fake.run(trigger).outcome is Outcome.FAILED
    assert recreated(fake) == 2


def test_a_lease_holder_that_dies_leaves_a_forced_rollout_to_the_next_run(fake: InMemoryCluster) -> None:
    person = Person(fake, "changed")
    stop = threading.Event()

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = person(call, do)
        if person.asked is Outcome.BUSY:
            stop.set()
        return reply

    fake.meet = way
    assert fake.handler().run(Job("shop", "push"), stop).outcome is Outcome.BUSY
    requested = state_of(fake.handler()).requested
    assert requested
    assert requested.force
    assert fake.run("tick").outcome is Outcome.APPLIED
    assert (recreated(fake), state_of(fake.handler()).requested) == (1, None), "what was under way is gone on with"
