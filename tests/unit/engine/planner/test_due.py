"""When a rollout is due, and whether a run goes on with one or begins it anew."""

from __future__ import annotations

import pytest

from handler.engine.planner.due import done, is_due, under_way
from handler.state.record import Progress, State, StepRecord

HERE, THERE = "a" * 64, "b" * 64
STARTED = "2026-11-21T12:00:00Z"


def step(name: str, outcome: str) -> StepRecord:
    return StepRecord("PreSync", name, name, "run", STARTED, outcome=outcome)


def state(recorded: str, digest: str = "", outcome: str = "", *steps: StepRecord) -> State:
    """A record of `recorded` as the rendered set that is applied; of `digest` as the one rolled out last, if any."""
    progress = Progress("c" * 40, digest, STARTED, outcome=outcome, steps=steps) if digest else None
    return State("shop", "default", "cluster", "https://git.example.com/shop.git", digest=recorded, rollout=progress)


@pytest.mark.parametrize(
    ("found", "force", "due"),
    [
        (state(HERE), False, False),
        (state(HERE), True, True),
        (state(THERE), False, True),
        (state(""), False, True),
        (state(HERE, HERE, "done"), False, False),
        (state(HERE, HERE, "done"), True, True),
        (state(HERE, HERE, "failed"), False, True),
        (state(HERE, HERE), False, True),
        (state(HERE, THERE, "failed"), False, True),
    ],
)
def test_a_rollout_is_due_when_its_set_is_new_or_asked_for_or_hasnt_ended_well(found: State, force: bool, due: bool) -> None:
    assert is_due(found, HERE, force=force) is due


@pytest.mark.parametrize("force", [False, True])
def test_a_killed_workers_rollout_is_continued_forced_or_not(force: bool) -> None:
    found = state(THERE, HERE, "", step("a", "done"), step("b", "skipped"), step("c", ""))
    assert under_way(found, HERE, force=force) == found.rollout
    assert done(found, HERE, force=force) == {("PreSync", "a"), ("PreSync", "b")}


@pytest.mark.parametrize(
    ("found", "force"),
    [
        (state(HERE), False),
        (state(HERE, THERE, "", step("a", "done")), False),
        (state(HERE, HERE, "done", step("a", "done")), True),
        (state(HERE, HERE, "failed", step("a", "failed")), True),
        (state(HERE, HERE, "", step("a", "failed"), step("b", "done")), True),
    ],
)
def test_what_has_ended_or_failed_or_is_another_set_begins_anew(found: State, force: bool) -> None:
    assert under_way(found, HERE, force=force) is None
    assert done(found, HERE, force=force) == frozenset()


def test_a_failed_rollout_that_isnt_forced_is_continued() -> None:
    found = state(THERE, HERE, "", step("a", "failed"))
    assert under_way(found, HERE, force=False) == found.rollout
