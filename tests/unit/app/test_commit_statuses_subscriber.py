"""What hears the events of runs: which of them let a record be looked at, once for each host, and what the host then shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.app.commit_statuses import subscriber
from handler.app.commit_statuses.subscriber import CommitStatuses
from handler.app.run_events import FEEDBACK, kind
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.errors import GitUnavailable
from handler.model.event import Job
from handler.model.plan import Hold
from handler.model.result import Outcome, Result
from handler.model.run_event import PlanHeld, RunEnded, RunPhase
from tests.patience import PATIENCE
from tests.unit.app.shown_commits import A, B, Records, owed, shop


@pytest.fixture
def records() -> Records:
    return Records(shop(), shop("cart"))


@pytest.fixture
def statuses(records: Records, monkeypatch: pytest.MonkeyPatch) -> CommitStatuses:
    monkeypatch.setattr(subscriber, "SOON", 0.0)
    return CommitStatuses(records.settings, records)


def ended(run: str = "run-a", target: str = "shop", **job: Any) -> RunEnded:
    return RunEnded(Job(target, "push", **job), Result(target, Outcome.APPLIED, A, run=run), 1.0)


def test_how_a_run_has_ended_is_what_its_host_shows(records: Records, statuses: CommitStatuses) -> None:
    records.put(owed(A, StatusState.FAILURE, "3 created, then: a.yaml:3: no such field (and 2 more)"))
    statuses.hear(ended())
    statuses.settle(PATIENCE)
    shown = StatusState.FAILURE, "3 created, then: a.yaml:3: no such field (and 2 more)"
    assert records.host.posted == [CommitStatus(A, "anneal/blue/shop", *shown, "https://anneal.example.com/ui/targets/shop")]
    assert records.host.asked == 0, "the run has just been heard of"


def test_a_run_that_goes_on_is_pending_once_however_often_it_is_heard(records: Records, statuses: CommitStatuses) -> None:
    records.put(owed(A, StatusState.PENDING, "being applied"))
    looks = []
    for phase in ("apply", "wait", "prune"):
        statuses.hear(RunPhase("shop", "run-a", A, phase))
        statuses.settle(PATIENCE)
        looks.append(records.host.said)
    assert looks == [[(A, "pending")]] * 3
    records.put(owed(A), owed(B, StatusState.PENDING))
    statuses.hear(RunPhase("shop", "run-a", A, "soak"))
    assert statuses.settle(PATIENCE)
    assert records.host.said == [(A, "pending")], "a commit that is shown as pending isn't looked at for that again"


def test_most_runs_have_ended_before_they_are_shown_as_pending(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriber, "SOON", 3600.0)
    statuses = CommitStatuses(records.settings, records)
    records.put(owed(A, StatusState.PENDING, "being applied"))
    statuses.hear(RunPhase("shop", "run-a", A, "apply"))
    assert not statuses.settle(PATIENCE), "it is due, but not soon"
    records.put(owed(A))
    statuses.hear(ended())
    assert statuses.settle(PATIENCE)
    assert records.host.said == [(A, "success")]


def test_a_plan_that_is_held_is_looked_at_at_once(records: Records, statuses: CommitStatuses) -> None:
    records.put(owed(A, StatusState.HELD, "held as h1"))
    statuses.hear(PlanHeld("shop", "run-a", A, Hold("h1", ("all go",), ())))
    assert statuses.settle(PATIENCE)
    assert (records.host.said, records.host.asked) == ([(A, "held")], 0)


def test_a_dry_run_shows_nothing(records: Records, statuses: CommitStatuses) -> None:
    records.put(owed(A))
    statuses.hear(ended(dry_run=True))
    assert statuses.settle(PATIENCE)
    assert records.host.posted == []


def test_what_an_earlier_process_left_is_asked_for_first(records: Records, statuses: CommitStatuses) -> None:
    records.put(owed(A))
    statuses.look("shop")
    assert statuses.settle(PATIENCE)
    assert (records.host.said, records.host.asked) == ([(A, "success")], 1)


@pytest.mark.parametrize("target", [shop(status=False), replace(shop(), repository=replace(shop().repository, feedback=None))])
def test_a_target_whose_host_shows_nothing_is_not_looked_at(target: Any) -> None:
    records = Records(target)
    records.put(owed(A))
    statuses = CommitStatuses(records.settings, records)
    for name in ("shop", "nobody", "shop~7"):
        statuses.hear(ended(target=name))
        statuses.look(name)
    assert statuses.settle(PATIENCE)
    assert (records.host.posted, statuses._lanes) == ([], {})


def test_a_host_that_is_down_holds_up_no_other_host() -> None:
    down, up = shop(url="https://gitea.east.example.com/a.git"), shop("cart", "https://gitea.west.example.com/b.git")
    records = Records(down, up, shop("till", "https://gitea.west.example.com/c.git"))

    def meets(status: CommitStatus) -> None:
        if status.context.endswith("/shop"):
            raise GitUnavailable.of("API", "down")

    records.host.meets = meets
    statuses = CommitStatuses(records.settings, records)
    for number, name in enumerate(("shop", "cart", "till")):
        records.put(owed(A), target=number)
        statuses.hear(ended(target=name))
    assert not statuses.settle(PATIENCE), "one host doesn't have its own yet"
    assert sorted(each.context for each in records.host.posted) == ["anneal/blue/cart", "anneal/blue/till"]
    assert len(statuses._lanes) == 2, "targets of one host share its lane"


def test_it_is_a_row_of_feedback_and_hears_no_other_event() -> None:
    assert kind("statuses") is CommitStatuses, FEEDBACK
    assert CommitStatuses.hears == (RunPhase, RunEnded, PlanHeld)
