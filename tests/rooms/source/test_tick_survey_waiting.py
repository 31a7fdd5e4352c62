"""A tick of targets that wait for others: those whose dependencies certainly aren't ready get no run, the rest do."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
import urllib3

from handler.app.tick_survey import TickSurvey
from handler.model.event import Job
from handler.model.health import HealthState
from handler.model.result import Outcome, Result
from handler.state.record import Attempt, Pin, RunStatus, Suspend, TargetHealth
from handler.state.record_values import DependencyWait, Obstacle
from infra.githost import Host
from tests.patience import PATIENCE
from tests.rooms.source.recorded_targets import Recorded, Told, recorded, soon

WELL = TargetHealth(HealthState.HEALTHY, soon(-60), soon(-60))
SICK = replace(WELL, state=str(HealthState.DEGRADED))


@pytest.fixture
def fleet(host: Host) -> Recorded:
    """Nine targets on two clusters, of three repositories; t0 is recorded and healthy, and all others depend on it."""
    made = recorded(host, 9, 3, ("east", "west"))
    targets = made.settings.targets
    others = (replace(target, depends_on=("t0",)) for target in targets[1:])
    made.settings = replace(made.settings, targets=(targets[0], *others))
    made.change("t0", health=WELL)
    return made


def wait(fleet: Recorded, name: str, **more: Any) -> None:
    """Let a target's head wait for t0, as its run has recorded it: there was another commit before."""
    target = fleet.target(name)
    head = fleet.commits[target.repository.url]
    awaits = DependencyWait(head, fleet.state(target).settings, soon(-60), (Obstacle("t0", "it is degraded", "anneal status t0"),))
    waiting = RunStatus("waiting", soon(-60), message="waiting for t0: it is degraded; anneal status t0")
    fleet.change(name, **({"commit": "b" * 40, "awaits": awaits, "status": waiting} | more))


def surveyed(fleet: Recorded) -> Told:
    TickSurvey(fleet.settings, fleet.handler()).look(fleet.ticks(), told := Told())
    return told


def test_what_is_recorded_is_quiet_however_its_dependency_does(fleet: Recorded) -> None:
    fleet.change("t0", health=SICK)
    assert surveyed(fleet).runs == set()


def test_what_waits_gets_a_run_only_where_its_dependency_may_be_ready(fleet: Recorded) -> None:
    wait(fleet, "t2")
    assert surveyed(fleet).runs == {"t2"}
    fleet.change("t0", health=SICK)
    told = surveyed(fleet)
    assert told.runs == set()
    result = told.results["t2"]
    assert result
    assert (result.outcome, result.message) == (Outcome.WAITING, "waiting for t0: it is degraded; anneal status t0")


def test_a_first_commit_that_waits_is_known_to_wait_still(fleet: Recorded) -> None:
    wait(fleet, "t2", commit="", settings="", repository="")
    fleet.change("t0", health=SICK)
    assert surveyed(fleet).runs == set()


def test_a_dependency_that_has_no_record_or_is_behind_in_the_same_repository_is_not_ready(fleet: Recorded) -> None:
    wait(fleet, "t6")  # of the repository of t0, and on its cluster
    fleet.change("t0", commit="b" * 40)
    assert "t6" not in surveyed(fleet).runs
    fleet.change("t0", pin=Pin("b" * 40, by="ada"))
    assert "t6" in surveyed(fleet).runs, "a person's pin may be what it should have"
    handler = fleet.handler()
    found = handler.store(fleet.target("t0")).read()
    handler.objects(fleet.target("t0")).delete("ConfigMap", "anneal-system", "anneal-t0", uid=found.uid)
    assert "t6" not in surveyed(fleet).runs


def test_of_a_cluster_that_this_survey_does_not_ask_nothing_is_known(fleet: Recorded) -> None:
    fleet.change("t0", health=SICK)
    wait(fleet, "t3")  # on the other cluster
    ticks = {job.target: job for job in fleet.ticks()}
    TickSurvey(fleet.settings, fleet.handler()).look([ticks["t3"]], told := Told())
    assert told.runs == {"t3"}


def test_it_is_judged_once_the_other_cluster_has_answered_however_late(fleet: Recorded) -> None:
    wait(fleet, "t3")
    others = threading.Event()

    def told_by(job: Job, result: Result | None, mute: str) -> None:
        told(job, result, mute)
        if {"t1", "t5", "t7"} <= told.results.keys():  # of its own cluster
            others.set()

    told = Told()
    fleet.places["east"].hold = lambda: assert_set(others)
    TickSurvey(fleet.settings, fleet.handler(), deadline=2 * PATIENCE).look(fleet.ticks(), told_by)
    assert told.runs == {"t3"}, "t0 is healthy"
    fleet.places["east"].hold = None
    fleet.change("t0", health=SICK)
    assert surveyed(fleet).runs == set()


def assert_set(event: threading.Event) -> None:
    assert event.wait(PATIENCE)


def test_a_dependency_whose_cluster_can_not_be_seen_gives_no_run_that_would_wait_for_that_cluster(fleet: Recorded) -> None:
    wait(fleet, "t3")

    def broken() -> None:
        raise urllib3.exceptions.NewConnectionError(None, "nothing listens")  # type: ignore[arg-type]  # of no connection

    fleet.places["east"].hold = broken
    told = surveyed(fleet)
    assert "t3" not in told.runs
    assert told.runs >= {"t0", "t2"}, "its own targets have their runs, which report it"


@pytest.mark.parametrize(
    "more",
    [
        {"attempt": Attempt("c" * 40, "d" * 64, "d" * 64, "u-1.1", soon(-60))},
        {"pin": Pin("b" * 40)},
        {"suspend": Suspend("ada")},
        {"drift_due": soon(-1)},
        {"settings": "e" * 64},
        {"repository": "https://git.example.com/acme/other.git"},
        {"awaits": DependencyWait("c" * 40, "d" * 64, soon(-60))},
        {"status": RunStatus("failed", soon(-60))},
    ],
    ids=lambda more: next(iter(more)),
)
def test_what_waits_and_has_something_else_to_do_gets_its_run(fleet: Recorded, more: dict[str, Any]) -> None:
    fleet.change("t0", health=SICK)
    wait(fleet, "t2", **more)
    assert surveyed(fleet).runs == {"t2"}
