from __future__ import annotations

from dataclasses import replace

import pytest

from handler.model.errors import AccessDenied, AnnealError, GitUnavailable, LeaseLost, ManifestInvalid, Problem
from handler.model.event import Delivery
from handler.model.names import Identity
from handler.model.plan import Action, Change, FieldChange, Plan
from handler.model.result import Outcome, Result
from handler.model.tree import CommitInfo
from handler.state.record import Run, RunStatus
from handler.state.record_format import seconds_of, stamp
from handler.state.run_history import append, deliveries, drift_of, ended, failed, rolling, run_of
from tests.unit.state.samples import API, NOON, sha

START = seconds_of(NOON)


def run(number: int, outcome: str = "applied", message: str = "", commit: str = "") -> Run:
    return Run(f"r{number}", "push", outcome, stamp(START + number), commit or sha(), message=message)


def test_the_newest_run_is_in_front_and_twenty_are_kept() -> None:
    history: tuple[Run, ...] = ()
    for number in range(25):
        history = append(history, run(number))
    assert [entry.id for entry in history] == [f"r{number}" for number in range(24, 4, -1)]


def test_the_same_failure_of_the_same_commit_is_one_entry() -> None:
    history = append((run(0),), run(1, "failed", "no"))
    for number in (2, 3):
        history = append(history, run(number, "failed", "no"))
    assert len(history) == 2
    assert (history[0].times, history[0].started, history[0].last, history[0].id) == (3, stamp(START + 1), stamp(START + 3), "r3")


@pytest.mark.parametrize(
    "newer",
    [run(2, "failed", "other"), run(2, "failed", "no", sha("b")), run(2, "applied", "no"), replace(run(2, "failed", "no"), code="x")],
)
def test_another_run_is_a_history_entry_of_its_own(newer: Run) -> None:
    history = append((run(1, "failed", "no"),), newer)
    assert [entry.id for entry in history] == ["r2", "r1"]


def test_a_run_names_what_it_changed_and_caps_the_list() -> None:
    changes = tuple(Change(Action.UPDATE, Identity("apps", "Deployment", "shop", f"api-{number}")) for number in range(60))
    plan = Plan("shop", sha(), ((*changes, Change(Action.UNCHANGED, API)),))
    result = Result("shop", Outcome.APPLIED, sha(), "push", counts=plan.counts(), duration=1.5, run="r1", plan=plan, written=plan.writes)
    entry = run_of(result, CommitInfo(sha(), "Add api", "Ada", 0), "ada", START)
    assert (entry.subject, entry.author, entry.actor, entry.started) == ("Add api", "Ada", "ada", NOON)
    assert len(entry.changed) == 50
    assert entry.changed[0] == "Deployment/shop/api-0 update"
    assert entry.changed[-1] == "and 11 more"
    assert entry.counts == {"configured": 60, "unchanged": 1}


def test_a_failed_run_without_a_commit_carries_its_problems() -> None:
    result = Result(
        "shop", Outcome.FAILED, problems=(Problem("Git", "away"), Problem("Net", "down")), run="r", trigger="tick", code="git-unavailable"
    )
    entry = run_of(result, None, "", START)
    assert entry.message == "Git: away\nNet: down"
    assert entry.changed == ()


@pytest.mark.parametrize(
    ("error", "who", "waits"),
    [(GitUnavailable, "nobody", 60), (LeaseLost, "nobody", 60), (AccessDenied, "operator", 0), (ManifestInvalid, "author", 0)],
)
def test_only_transient_errors_get_a_next_try_with_back_off(error: type[AnnealError], who: str, waits: int) -> None:
    status = failed(RunStatus("failed", "2026-01-01T00:00:00Z", failures=2), error.of("X", "no"), START)
    assert (status.phase, status.who, status.code, status.failures, status.message) == ("failed", who, error.code, 3, "X: no")
    assert status.next_try == (stamp(START + waits) if waits else "")
    assert status.since == "2026-01-01T00:00:00Z"


def test_a_failure_after_others_keeps_since_when_though_a_rollout_went_on_in_between() -> None:
    before = "2026-01-01T00:00:00Z"
    again = failed(rolling(RunStatus("failed", before, failures=2), START), GitUnavailable.of("X", "no"), START + 60)
    assert (again.phase, again.since, again.failures) == ("failed", before, 3)
    first = failed(rolling(RunStatus("applied", before), START), GitUnavailable.of("X", "no"), START + 60)
    assert (first.since, first.failures) == (stamp(START + 60), 1)


def test_a_rollout_whose_run_may_not_wait_goes_on() -> None:
    status = rolling(RunStatus("applied", NOON), START)
    assert (status.phase, status.since) == ("rolling-out", stamp(START))
    waits = ended(status, Result("shop", Outcome.WAITING, next_try=START + 75), START + 60)
    assert (waits.phase, waits.since, waits.next_try) == ("rolling-out", stamp(START), stamp(START + 75))
    assert ended(RunStatus("applied", NOON), Result("shop", Outcome.WAITING), START + 60).phase == "waiting"
    assert ended(status, Result("shop", Outcome.APPLIED), START + 60).phase == "applied"


def test_success_resets_failures() -> None:
    status = ended(
        failed(RunStatus(), GitUnavailable.of("X", "no"), START), Result("shop", Outcome.APPLIED, counts={"created": 2}), START + 60
    )
    assert status == RunStatus("applied", stamp(START + 60), {"created": 2})


def test_a_run_that_changed_nothing_leaves_no_trace_and_a_superseded_one_the_phase() -> None:
    good = RunStatus("applied", NOON, {"created": 2})
    assert ended(good, Result("shop", Outcome.UNCHANGED, counts={"unchanged": 2}, message="nothing to do"), START + 60) == good
    assert ended(RunStatus("held", NOON), Result("shop", Outcome.SUPERSEDED), START + 60).phase == "held"


def test_deliveries_are_kept_once_and_the_last_twenty() -> None:
    many = [Delivery(str(number), "github", "refs/heads/main", sha(), "ada", NOON) for number in range(25)]
    assert [item.id for item in deliveries(tuple(many[:20]), [*many[18:], many[24]])] == [str(number) for number in range(5, 25)]


def test_the_drift_record_names_fields_with_their_managers_and_whole_objects() -> None:
    skipped = Change(Action.SKIP, Identity("", "ConfigMap", "shop", "b"), fields=(FieldChange("data.z", "1", "2"),))
    changes = [Change(action, Identity("", "ConfigMap", "shop", str(action))) for action in (Action.CREATE, Action.PRUNE, Action.UPDATE)]
    update = Change(Action.UPDATE, API, fields=(FieldChange("spec.replicas", "3", "5", "kubectl-scale"),))
    found = [
        (each.identity.name, each.path, bool(each.live), bool(each.declared), each.manager)
        for each in drift_of([update, skipped, *changes])
    ]
    whole = [("create", "", False, True, ""), ("prune", "", True, False, ""), ("update", "", True, True, "")]
    assert found == [*whole, ("api", "spec.replicas", True, True, "kubectl-scale")]


def test_a_run_has_one_entry_its_last() -> None:
    """A worker found the target held by another one of the same run, which then came to its end."""
    busy = Run("shop.asked", "replay", "busy", "2026-03-01T12:00:00Z")
    first, applied = replace(busy, id="shop.first", trigger="tick"), replace(busy, outcome="applied", commit="a" * 40)
    assert append((busy, first), applied) == (applied, first)


def test_a_failure_that_wrote_something_else_is_an_entry_of_its_own() -> None:
    wrote = replace(run(1, "failed", "no"), changed=("ConfigMap/shop/a create",))
    again = append(append((wrote,), run(2, "failed", "no")), run(3, "failed", "no"))
    assert [(entry.times, entry.changed) for entry in again] == [(3, wrote.changed)], "tried again, and nothing more was written"
    more = replace(run(4, "failed", "no"), changed=("ConfigMap/shop/b create",))
    assert [entry.times for entry in append(again, more)] == [1, 3]


def test_a_run_that_was_superseded_and_went_on_has_its_id_at_its_end() -> None:
    superseded = Run("shop.asked", "push", "superseded", NOON, sha("a"))
    again, applied = replace(superseded, commit=sha("b")), replace(superseded, outcome="applied", commit=sha("c"))
    found = append(append((superseded,), again), applied)
    assert [(entry.id, entry.commit) for entry in found] == [
        ("shop.asked", sha("c")),
        ("shop.asked-2", sha("b")),
        ("shop.asked-1", sha("a")),
    ]
    assert append((superseded,), replace(superseded, outcome="applied")) == (replace(superseded, outcome="applied"),), (
        "it went on with that"
    )
