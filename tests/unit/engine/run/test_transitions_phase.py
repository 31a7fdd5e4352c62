"""The phase while an attempt is open: where a rollout stands, and what a run waits for until it is gone."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from handler.engine.apply.wait_deleted import Lingering, LingeringObject
from handler.engine.planner.desired import Inputs
from handler.engine.run.transitions import lingering, opened
from handler.model.errors import ClusterUnavailable
from handler.model.names import Identity
from handler.model.result import Outcome
from handler.model.rollout import Group, Rollout
from handler.plan.rollout import PlannedRollout
from handler.state.record import RunStatus, State, WaitingFor
from handler.state.run_history import LINGERING, ROLLING
from handler.state.summary import Summary
from tests.unit.engine.canary_scenario import CanaryScenario
from tests.unit.engine.state_samples import COMMIT, INPUTS, LATER, NOON, NOW, PAST_NOON, planned, state

pytestmark = pytest.mark.slow

ROLLED = Inputs(replace(INPUTS.prepared, planned_rollout=PlannedRollout(Rollout("r", (Group("one", ()),)))), "settings")
APPLIED = RunStatus("applied", NOON)
FAILED = RunStatus("failed", NOON, message="no room", failures=2, code="rollout-failed", who="author")


def begun(status: RunStatus, inputs: Inputs = ROLLED, *, force: bool = False, **parts: Any) -> State:
    return opened(state(status=status, **parts), inputs, planned(), "token", None, LATER, force=force)


def test_an_attempt_that_carries_a_rollout_out_says_so_from_its_begin() -> None:
    found = begun(APPLIED)
    assert found.status == RunStatus(ROLLING, PAST_NOON)
    assert Summary.of(found).phase == ROLLING


def test_an_attempt_without_a_rollout_leaves_the_phase() -> None:
    assert begun(APPLIED, INPUTS).status == APPLIED
    assert begun(FAILED, INPUTS).status == FAILED


def test_a_commit_without_a_rollout_ends_the_phase_rolling_out() -> None:
    assert begun(RunStatus(ROLLING, NOON), INPUTS, commit="d" * 40).status == RunStatus("applied", PAST_NOON)
    assert begun(RunStatus(ROLLING, NOON), INPUTS).status == RunStatus("", PAST_NOON)


def test_a_rollout_tried_again_keeps_since_when_it_fails() -> None:
    found = begun(FAILED).status
    assert (found.phase, found.since, found.failures, found.message, found.code, found.who) == (ROLLING, NOON, 2, "", "", "")


@pytest.mark.parametrize(
    ("status", "force", "kept"), [(FAILED, True, False), (FAILED, False, True), (APPLIED, True, True), (APPLIED, False, True)]
)
def test_force_after_a_failed_wait_waits_anew(status: RunStatus, force: bool, kept: bool) -> None:
    waits = WaitingFor(COMMIT.sha, "everything", NOON)
    assert begun(status, force=force, waiting=waits).waiting == (waits if kept else None)


# --- a canary between runs that may not wait
def test_a_canary_that_is_held_is_rolling_out_between_runs_and_says_its_share() -> None:
    trial = CanaryScenario.held()
    began = trial.state.status.since
    assert (trial.state.status.phase, trial.step.share, trial.step.outcome) == (ROLLING, 25, "")
    assert trial.run("tick").outcome is Outcome.WAITING
    assert (trial.state.status.phase, trial.state.status.since) == (ROLLING, began)
    assert trial.state.status.next_try


def test_a_canary_that_was_withdrawn_has_no_share() -> None:
    trial = CanaryScenario.held()
    trial.broken()
    assert trial.run("push").outcome is Outcome.FAILED
    assert (trial.state.status.phase, trial.step.share, trial.live("api-canary")) == ("failed", 0, None)


# --- what isn't gone
SECOND = Identity("", "ConfigMap", "shop", "two")
ONE = LingeringObject("ConfigMap/shop/one", "is not gone yet", identity=Identity("", "ConfigMap", "shop", "a/name of no record"))
TWO = LingeringObject("ConfigMap/shop/two", "is not gone yet", fix="look", identity=SECOND)


class Run:
    """A run of whose record only the status is written. `refuses`: what each write raises."""

    def __init__(self, status: RunStatus, refuses: Exception | None = None) -> None:
        self.state, self.written, self.refuses = state(status=status), 0, refuses
        self.clock = lambda: LATER

    def record(self, change: Any) -> None:
        if self.refuses:
            raise self.refuses
        self.state, self.written = change(self.state), self.written + 1


def told(run: Run) -> Lingering:
    found: Any = run
    return Lingering(found)


def test_the_phase_is_pruning_until_all_objects_are_gone() -> None:
    run = Run(RunStatus(ROLLING, NOON, {"configured": 1}))
    telling = told(run)
    telling.report([ONE, replace(TWO, message="is kept by http://ann:hunter2@db")])
    status = run.state.status
    assert (status.phase, status.since, status.code, status.who, status.lingers) == (
        "pruning",
        PAST_NOON,
        "still-deleting",
        "nobody",
        SECOND,
    )
    assert status.message == "ConfigMap/shop/one: is not gone yet\nConfigMap/shop/two: is kept by http://ann:***@db; look"
    telling.report([])
    assert run.state.status == RunStatus(ROLLING, NOON, {"configured": 1})


def test_parallel_deletion_waits_are_recorded_together() -> None:
    run = Run(APPLIED)
    telling = told(run)
    telling.report([ONE])
    other = threading.Thread(target=lambda: telling.report([TWO]))
    other.start()
    other.join()
    assert run.state.status.message.splitlines() == [str(ONE), str(TWO)]
    telling.report([])
    assert (run.state.status.phase, run.state.status.message) == ("pruning", str(TWO))


def test_an_earlier_runs_pruning_message_goes_once_its_objects_are_gone() -> None:
    before = RunStatus("pruning", NOON, message="an older one", code="still-deleting", who="nobody")
    run = Run(before)
    telling = told(run)
    telling.report([ONE])
    assert run.state.status == replace(before, message=str(ONE))
    telling.report([])
    assert run.state.status == replace(before, message="")


def test_a_record_that_cant_be_written_ends_no_wait() -> None:
    run = Run(APPLIED, ClusterUnavailable.of("cluster", "is away"))
    told(run).report([ONE])
    assert run.written == 0


def test_only_the_first_lingering_objects_are_named() -> None:
    lines = [f"ConfigMap/shop/c{number}: is not gone yet" for number in range(LINGERING + 5)]
    found = lingering(state(status=APPLIED), lines, APPLIED, NOW).status.message.splitlines()
    assert (len(found), found[-1]) == (LINGERING + 1, "and 5 more")
