"""What is recorded of a wait is found again by the next run, however it is called and whatever the clock does."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from handler.config.settings import EvidenceSettings, Wait
from handler.engine.health.custom_health import no_expressions
from handler.engine.rollout_runner.journal import Journal, JournalWaitRecord
from handler.engine.run.context import ChosenRevision, Round
from handler.engine.waits import wait as waiting
from handler.engine.waits.wait import Waits
from handler.engine.waits.wait_record import StateWaitRecord
from handler.model.errors import RolloutFailed, StillWaiting
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.queue_view import ALONE
from handler.plan.inventory import Membership, TargetMarks
from handler.state.record import Progress, State, StepRecord, WaitingFor
from handler.state.record_format import seconds_of, stamp
from handler.state.store import fitted
from tests.unit.plan.samples import desired, document
from tests.unit.state.samples import NAMESPACE, NOON, TOOLING, blank, sha

LONG = ", ".join(f"Deployment/shop/{letter * 120}" for letter in "abc") + " (before stage 2 of 2)"
START = seconds_of(NOON)
LIMITS = Wait(timeout=300.0)
WEB = document("Deployment", "web", "apps/v1")
STEP = ("one", "web")
ROLLOUT = Progress(sha(), "d" * 64, NOON, steps=tuple(StepRecord("one", name, name, "Act", NOON) for name in ("web", "other")))


@dataclass
class Waiter:
    """A run that waits, over a record that is stored as any is; `left` has how many seconds each wait was given, `shows` what lives."""

    state: State = field(default_factory=blank)
    patience: float = 0.0
    now: float = START
    left: list[float] = field(default_factory=list)
    written: int = 0
    shows: dict[Any, Any] = field(default_factory=dict)
    round: Round = field(default_factory=lambda: Round(0.0))
    revision: ChosenRevision = ChosenRevision(sha())  # noqa: RUF009 - frozen
    force: bool = False
    job: Job = field(default_factory=lambda: Job("shop", "tick"))
    lease: Any = None
    queue: Any = ALONE
    writing: Any = field(default_factory=threading.RLock)

    @property
    def deps(self) -> Any:
        api = SimpleNamespace(server_time=lambda: self.now, get=lambda *_, **__: None)
        planner = SimpleNamespace(api=api, ours=Membership(TargetMarks("shop", "set")), scopes=None)
        target = SimpleNamespace(evidence=EvidenceSettings())
        return SimpleNamespace(patience=self.patience, planner=planner, target=target, health=no_expressions())

    def clock(self) -> float:
        return self.now

    def record(self, change: Callable[[State], State]) -> None:
        self.state, self.written = fitted(change(self.state), NAMESPACE, TOOLING)[0], self.written + 1

    closed: frozenset[Identity] = frozenset()

    def wait(self, what: str, limits: Wait = LIMITS) -> None:
        run = self.run
        Waits(run).healthy(StateWaitRecord(run, what), desired(WEB), {}, limits)

    def step(self, limits: Wait) -> None:
        """Wait for the health of the first step's object, as one run of a function does."""
        run, inputs = self.run, SimpleNamespace()
        journal = Journal(run, inputs)  # type: ignore[arg-type]  # what a journal that has begun asks of them
        try:
            Waits(run).healthy(JournalWaitRecord(journal, STEP, "one, web", START), desired(WEB), {}, limits)
        finally:
            journal.close()

    @property
    def run(self) -> Any:
        return self


@pytest.fixture
def waiter(monkeypatch: pytest.MonkeyPatch) -> Waiter:
    """Return a run whose cluster shows nothing new."""
    made = Waiter()

    def follow(_api: Any, _wanted: Any, judge: Any, left: float, *_: Any, **__: Any) -> bool:
        made.left.append(left)
        for identity, live in made.shows.items():
            judge(identity, live)
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
    waiter.state = blank(waiting=WaitingFor(sha(), "everything", stamp(START + since)))
    waiter.wait("everything")
    assert waiter.left == [left]


def test_a_clock_that_was_set_back_freezes_no_wait_that_goes_from_run_to_run(waiter: Waiter) -> None:
    limits, ahead = Wait(timeout=300.0, progress_timeout=60.0), stamp(START + 86_400)
    with pytest.raises(StillWaiting):
        waiter.wait("everything", limits)
    known = waiter.state.waiting
    assert known
    waiter.state = blank(waiting=replace(known, since=ahead, moved=ahead))
    with pytest.raises(StillWaiting):
        waiter.wait("everything", limits)
    assert waiter.state.waiting == replace(known, moved=NOON), "it has begun now"
    waiter.now += 60
    with pytest.raises(RolloutFailed, match="nothing has changed for 1m"):
        waiter.wait("everything", limits)


def test_a_forged_mark_of_what_was_seen_last_is_no_time(waiter: Waiter) -> None:
    with pytest.raises(StillWaiting):
        waiter.wait("everything")
    known = waiter.state.waiting
    assert known
    waiter.state = blank(waiting=WaitingFor(known.commit, known.what, known.since, seen=known.seen))
    with pytest.raises(StillWaiting):
        waiter.wait("everything")
    assert waiter.state.waiting
    assert waiter.state.waiting.moved == NOON


# --- what ended a wait once
def test_a_wait_past_its_progress_timeout_is_over_until_a_request_by_hand(waiter: Waiter) -> None:
    limits = Wait(timeout=300.0, progress_timeout=60.0)
    with pytest.raises(StillWaiting):
        waiter.wait("everything", limits)
    waiter.now += 60
    for _ in range(2):
        with pytest.raises(RolloutFailed):
            waiter.wait("everything", limits)
    assert waiter.state.waiting
    assert (waiter.state.waiting.over, waiter.left[-1]) == (True, 0.0)
    waiter.force, waiter.patience = True, math.inf
    waiter.wait("everything", limits)
    assert waiter.left[-1] == 300.0


def test_a_look_at_a_wait_that_is_over_keeps_it_so_however_long_it_takes(waiter: Waiter) -> None:
    waiter.state = blank(waiting=WaitingFor(sha(), "everything", NOON, over=True))
    kept = StateWaitRecord(waiter.run, "everything")
    kept.note()
    assert (waiter.state.waiting, waiter.written) == (WaitingFor(sha(), "everything", NOON, over=True), 0)


# --- of a step
def test_a_steps_progress_timeout_counts_over_the_runs_of_a_function(waiter: Waiter) -> None:
    waiter.state, limits = blank(rollout=ROLLOUT), Wait(timeout=300.0, progress_timeout=60.0)
    for later in (0.0, 30.0, 59.0):
        waiter.now = START + later
        with pytest.raises(StillWaiting):
            waiter.step(limits)
    assert waiter.written == 1  # nothing was new
    waiter.now = START + 60
    with pytest.raises(RolloutFailed, match="isn't healthy, and nothing has changed for 1m"):
        waiter.step(limits)
    assert waiter.state.waiting is None


def test_a_step_with_progress_has_its_progress_timeout_anew(waiter: Waiter) -> None:
    waiter.state, limits, one = blank(rollout=ROLLOUT), Wait(timeout=300.0, progress_timeout=60.0), desired(WEB)[0]
    for later, ready in ((0.0, 1), (59.0, 2), (118.0, 2)):
        waiter.now, waiter.shows = START + later, {one.identity: deployed(ready)}
        with pytest.raises(StillWaiting):
            waiter.step(limits)
    assert waiter.written == 2
    waiter.now = START + 119
    with pytest.raises(RolloutFailed, match="nothing has changed for 1m: 2 of 3"):
        waiter.step(limits)


def deployed(ready: int) -> dict[str, Any]:
    status = {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": ready, "availableReplicas": ready}
    metadata = {"name": "web", "namespace": "shop", "generation": 1}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": 3}, "status": status}


def test_the_wait_record_of_a_step_is_small_and_goes_when_it_ends(waiter: Waiter) -> None:
    waiter.state = blank(rollout=ROLLOUT)
    journal = Journal(waiter.run, SimpleNamespace())  # type: ignore[arg-type]  # see above
    kept = JournalWaitRecord(journal, STEP, "one, web", START)
    many = {f"{number:064x}"[::-1]: START + number for number in range(1000)}
    kept.keep(many)
    journal.close()
    assert waiter.state.rollout
    web, other = waiter.state.rollout.steps
    assert (len(web.stood), len(web.stood[0].seen), other.stood) == (20, 12, ())
    again = JournalWaitRecord(journal, STEP, "one, web", START)
    assert [again.moved(seen) for seen in [*many][:3]] == [START, START + 1, START + 2]
    journal.finished(*STEP, "done")
    assert waiter.state.rollout.steps[0].stood == ()
