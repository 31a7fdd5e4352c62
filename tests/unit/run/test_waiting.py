"""What is recorded of a wait is found again by the next run, however it is called and whatever the clock does."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from handler.config.settings import Wait
from handler.model.errors import StillWaiting
from handler.model.event import Job
from handler.model.meanwhile import ALONE
from handler.run.waits import waiting
from handler.run.waits.waiting import Waits
from handler.state.configmap import fitted
from handler.state.record import State, Waiting
from handler.state.rules import seconds_of, stamp
from tests.unit.plan.samples import desired, document
from tests.unit.state.samples import NAMESPACE, NOON, TOOLING, blank, sha

LONG = ", ".join(f"Deployment/shop/{letter * 120}" for letter in "abc") + " (before stage 2 of 2)"
START = seconds_of(NOON)


@dataclass
class Waiter:
    """A run that waits, over a record that is stored as any is; `left` has how many seconds each wait was given."""

    state: State = field(default_factory=blank)
    patience: float = 0.0
    now: float = START
    left: list[float] = field(default_factory=list)
    written: int = 0
    unhealthy: tuple[str, ...] | None = None
    goal: str = sha()
    job: Job = field(default_factory=lambda: Job("shop", "tick"))
    lease: Any = None
    meanwhile: Any = ALONE
    writing: Any = field(default_factory=threading.RLock)

    @property
    def rooms(self) -> Any:
        planner = SimpleNamespace(api=SimpleNamespace(server_time=lambda: self.now), applyset="set", scopes=None)
        return SimpleNamespace(clock=lambda: self.now, patience=self.patience, planner=planner)

    def record(self, change: Callable[[State], State]) -> None:
        self.state, self.written = fitted(change(self.state), NAMESPACE, TOOLING)[0], self.written + 1

    def mask(self, text: str) -> str:
        return text

    def wait(self, what: str) -> None:
        run: Any = self
        Waits(run).healthy(what, desired(document("Deployment", "web", "apps/v1")), {}, Wait(timeout=300.0))


@pytest.fixture
def waiter(monkeypatch: pytest.MonkeyPatch) -> Waiter:
    """Return a run whose cluster shows nothing new."""
    made = Waiter()

    def follow(_api: Any, _wanted: Any, _judge: Any, left: float, *_: Any, **__: Any) -> bool:
        made.left.append(left)
        return made.patience > 0

    monkeypatch.setattr(waiting, "follow", follow)
    return made


@pytest.mark.parametrize("what", ["everything", LONG], ids=["short", "long"])
def test_a_wait_that_goes_from_run_to_run_keeps_its_beginning(waiter: Waiter, what: str) -> None:
    for later in (0.0, 100.0, 200.0):
        waiter.now = START + later
        with pytest.raises(StillWaiting):
            waiter.wait(what)
        assert waiter.state.waiting
        assert waiter.state.waiting.since == NOON
    written = waiter.written
    with pytest.raises(StillWaiting):
        waiter.wait(what)
    assert waiter.written == written  # nothing is new


@pytest.mark.parametrize(("since", "left"), [(-100.0, 200.0), (-400.0, 0.0), (86_400.0, 300.0)])
def test_a_beginning_that_lies_ahead_of_the_clock_gives_no_more_time(waiter: Waiter, since: float, left: float) -> None:
    waiter.patience = math.inf
    waiter.state = blank(waiting=Waiting(sha(), "everything", stamp(START + since)))
    waiter.wait("everything")
    assert waiter.left == [left]


def test_a_forged_mark_of_what_was_seen_last_is_no_time(waiter: Waiter) -> None:
    with pytest.raises(StillWaiting):
        waiter.wait("everything")
    known = waiter.state.waiting
    assert known
    waiter.state = blank(waiting=Waiting(known.commit, known.what, known.since, seen=known.seen))
    with pytest.raises(StillWaiting):
        waiter.wait("everything")
    assert waiter.state.waiting
    assert waiter.state.waiting.moved == NOON
