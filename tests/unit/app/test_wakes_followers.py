"""Which events wake the targets that follow another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.app.record_summaries import Readable
from handler.app.wakes import Wakes
from handler.config.settings import Settings, Target
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.model.run_event import HealthChanged, RunEnded
from tests.unit.engine.promoting_targets import PROD, STAGING, following


def unread(_target: Target) -> Readable:
    raise AssertionError("no target depends on another")


def woken(event: RunEnded | HealthChanged) -> list[str]:
    found: list[Job] = []
    Wakes(Settings(targets=(STAGING, PROD, following("last", "prod"))), unread, found.extend).hear(event)
    assert all(job.trigger == "tick" for job in found)
    return [job.target for job in found]


def ended(outcome: Outcome, trigger: str = "push", *, target: str = "staging", recorded: bool = True, dry: bool = False) -> RunEnded:
    return RunEnded(Job(target, trigger, dry_run=dry), Result(target, outcome, recorded=recorded), 1.0)


def test_only_those_that_follow_the_target_are_woken() -> None:
    assert woken(ended(Outcome.APPLIED)) == ["prod"]
    assert woken(ended(Outcome.APPLIED, target="prod")) == ["last"]
    assert woken(ended(Outcome.APPLIED, target="last")) == []


@pytest.mark.parametrize("trigger", ["push", "tick", "drift", "replay"])
def test_what_was_applied_wakes_them_whatever_asked_for_it(trigger: str) -> None:
    assert woken(ended(Outcome.APPLIED, trigger)) == ["prod"]


def test_what_changed_nothing_wakes_them_only_if_it_was_no_look_of_the_clock() -> None:
    assert woken(ended(Outcome.UNCHANGED)) == ["prod"]
    assert woken(ended(Outcome.UNCHANGED, "tick")) == woken(ended(Outcome.UNCHANGED, "drift")) == []


@pytest.mark.parametrize("trigger", ["tick", "drift"])
def test_a_look_that_records_another_commit_which_reads_the_same_wakes_them(trigger: str) -> None:
    looked = ended(Outcome.UNCHANGED, trigger)
    assert woken(replace(looked, result=replace(looked.result, moved=True))) == ["prod"]
    assert woken(replace(looked, result=replace(looked.result, moved=True, recorded=False))) == []


def test_failures_unrecorded_ends_and_plans_wake_none() -> None:
    for outcome in (Outcome.FAILED, Outcome.HELD, Outcome.ROLLED_BACK, Outcome.WAITING):
        assert woken(ended(outcome)) == []
    assert woken(ended(Outcome.APPLIED, recorded=False)) == woken(ended(Outcome.APPLIED, dry=True)) == []


def test_health_that_a_watch_finds_again_wakes_them_and_any_other_does_not() -> None:
    assert woken(HealthChanged("staging", "progressing", "healthy")) == ["prod"]
    assert woken(HealthChanged("staging", "healthy", "degraded")) == []
    assert woken(HealthChanged("staging", "progressing", "healthy", run="staging.1")) == [], "the run's own end says so"
