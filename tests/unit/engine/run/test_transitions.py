"""What each end of a run leaves in the record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.engine.planner.exclusive_look import ExclusiveFindings
from handler.engine.planner.planner import Planned
from handler.engine.run.transitions import approve, asked, ended, grace_due, held, look_due, opened, standing, widened
from handler.model.event import Job
from handler.model.names import GroupKind, Identity
from handler.model.plan import Action, Change, Hold
from handler.model.result import Outcome, Result
from handler.state import run_history
from handler.state.record import Approval, Attempt, Drift, HeldPlan, NamedRequest, Orphan, Progress, RunStatus, TargetHealth, WaitingFor
from handler.state.record_format import stamp
from handler.state.record_values import RunOnce
from tests.unit.engine.state_samples import (
    APPROVAL,
    COMMIT,
    CONFIG_MAP,
    DELIVERY,
    DRIFT,
    GONE,
    INPUTS,
    KEYS,
    LATER,
    NOON,
    NOW,
    PAST_NOON,
    PIN,
    PUSH,
    READS,
    SECRET,
    SERVICE,
    SKIPPED,
    UPDATE,
    WAITING,
    WEB,
    planned,
    record,
    state,
)


@pytest.mark.parametrize(
    ("digest", "before", "after"),
    [
        (INPUTS.prepared.digest, "", "done"),
        ("f" * 64, "", "skipped"),
        ("f" * 64, "failed", "failed"),
        (INPUTS.prepared.digest, "done", "done"),
    ],
)
def test_the_write_that_records_a_commit_ends_its_rollout_and_one_it_has_overtaken(digest: str, before: str, after: str) -> None:
    known = Progress("d" * 40, digest, NOON, outcome=before)
    found = record(state(rollout=known), planned()).rollout
    assert found is not None
    assert (found.outcome, bool(found.finished)) == (after, not before)


def test_before_the_first_write_the_record_holds_all_that_was_and_all_that_will_be() -> None:
    before = state(kinds=frozenset({SECRET}), namespaces=frozenset({"old"}))
    plan = replace(planned(), present=frozenset({SERVICE}))
    found = widened(before, [WEB, Identity("", "Namespace", "", "new")], plan)
    assert found.kinds == {SECRET, SERVICE, CONFIG_MAP, GroupKind("", "Namespace")}
    assert found.namespaces == {"old", "shop", "new"}


def test_an_open_attempt_says_what_is_being_applied_and_by_whose_token() -> None:
    before = state(held=WAITING, approval=APPROVAL, commit="d" * 40, reads="old")
    found = opened(before, INPUTS, planned(), "token", PIN, NOW)
    assert found.attempt == Attempt(COMMIT.sha, READS.digest(), "settings", "token", NOON)
    assert (found.pin, found.held, found.approval) == (PIN, None, APPROVAL)
    assert (found.commit, found.reads) == ("d" * 40, "old"), "the commit moves last"
    assert found.kinds == {CONFIG_MAP}
    assert found.namespaces == {"shop"}


@pytest.mark.parametrize("commit", [COMMIT.sha, "d" * 40])
def test_an_attempt_goes_on_with_the_wait_of_its_own_commit_only(commit: str) -> None:
    waits = WaitingFor(commit, "everything", NOON)
    found = opened(state(waiting=waits), INPUTS, planned(), "token", None, NOW)
    assert found.waiting == (waits if commit == COMMIT.sha else None)


def test_a_finished_run_moves_the_commit_and_closes_everything_it_answered() -> None:
    attempt = Attempt("x", "y", "z", "token", NOON)
    drift = (Drift(WEB, "data.a", "1", "2"),)
    before = state(attempt=attempt, held=WAITING, approval=APPROVAL, drift=drift, drift_due=NOON, pin=PIN)
    found = record(before, planned(UPDATE))
    assert (found.commit, found.reads, found.settings, found.digest) == (COMMIT.sha, READS.digest(), "settings", "rendered")
    assert (found.reads_paths, found.declared, found.deliveries) == (("deploy/web.yaml",), (WEB,), (DELIVERY,))
    assert (found.attempt, found.held, found.approval, found.drift, found.drift_due) == (None, None, None, (), "")
    assert found.pin == PIN


def test_a_request_is_answered_by_the_next_attempt_and_not_by_the_open_one() -> None:
    wanted = NamedRequest("ada", NOON, force=True)
    assert opened(state(requested=wanted), INPUTS, planned(UPDATE), "token", None, NOW).requested is None
    assert record(state(requested=wanted), planned()).requested is None, "a run without writes has looked everywhere"
    assert record(state(attempt=Attempt("x", "y", "z", "token", NOON), requested=wanted), planned(UPDATE)).requested == wanted


def test_a_recovery_records_neither_reads_nor_settings_so_that_the_next_run_plans_fully() -> None:
    found = record(state(), planned(UPDATE), recovery=True)
    assert (found.commit, found.reads, found.settings) == (COMMIT.sha, "", "")


def test_after_a_takeover_a_drift_run_is_due() -> None:
    assert record(state(), planned(UPDATE), due=LATER).drift_due == PAST_NOON


WIDE = {"kinds": frozenset({CONFIG_MAP, SERVICE}), "namespaces": frozenset({"shop", "bank"})}


@pytest.mark.parametrize(
    ("job", "plan", "kinds", "namespaces"),
    [
        (DRIFT, planned(), {CONFIG_MAP}, {"shop"}),
        (DRIFT, planned(prunes=(SKIPPED,)), {CONFIG_MAP, SECRET}, {"shop", "old"}),
        (DRIFT, planned(scopes=("shop", "bank")), {CONFIG_MAP}, {"shop"}),
        (DRIFT, planned(scopes=("shop",)), {CONFIG_MAP, SERVICE}, {"shop", "bank"}),
        (DRIFT, planned(UPDATE), {CONFIG_MAP, SERVICE}, {"shop", "bank"}),
        (PUSH, planned(), {CONFIG_MAP, SERVICE}, {"shop", "bank"}),
    ],
    ids=["listed, no member", "a member is kept", "all namespaces listed", "one namespace out of reach", "it wrote", "a push"],
)
def test_only_a_drift_run_that_found_no_member_narrows_the_record(
    job: Job, plan: Planned, kinds: set[GroupKind], namespaces: set[str]
) -> None:
    found = record(state(**WIDE), plan, job)
    assert found.kinds == kinds
    assert found.namespaces == namespaces


def test_a_cluster_scoped_member_that_is_kept_names_no_namespace() -> None:
    role = Change(Action.SKIP, Identity("", "PersistentVolume", "", "v"), "u-v", "7")
    assert record(state(), planned(prunes=(role,)), DRIFT).namespaces == {"shop"}


def test_orphans_are_listed_since_they_were_first_seen() -> None:
    new, pruned = Change(Action.SKIP, WEB, "u-new", "7"), Change(Action.PRUNE, WEB, "u-pruned", "7")
    before = state(orphans=(Orphan("u-gone", GONE, "2026-01-01T00:00:00Z"), Orphan("u-left", WEB, NOON)))
    found = record(before, planned(prunes=(SKIPPED, new, pruned)))
    assert found.orphans == (Orphan("u-gone", GONE, "2026-01-01T00:00:00Z"), Orphan("u-new", WEB, NOON))


@pytest.mark.parametrize(("waiting", "since"), [(None, PAST_NOON), (WAITING, NOON), (replace(WAITING, id="h0"), PAST_NOON)])
def test_a_held_plan_waits_since_it_was_first_held(waiting: HeldPlan | None, since: str) -> None:
    found = held(state(held=waiting, commit="d" * 40), Hold("h1", ("many",), KEYS), INPUTS, PUSH, LATER)
    assert found.held == replace(WAITING, since=since)
    assert (found.deliveries, found.commit, found.attempt) == ((DELIVERY,), "d" * 40, None)


def test_what_is_held_says_what_its_run_alone_does() -> None:
    found = held(state(held=WAITING), Hold("h1", ("many",), KEYS), INPUTS, PUSH, LATER, RunOnce(("flux",)))
    assert found.held == replace(WAITING, once=RunOnce(("flux",)))


def test_an_approval_is_of_exactly_what_is_held() -> None:
    assert approve(state(held=WAITING), "ada", NOW).approval == APPROVAL
    assert approve(state(), "ada", NOW) == state()


@pytest.mark.parametrize(
    ("approval", "same"),
    [
        (APPROVAL, True),
        (None, False),
        (replace(APPROVAL, reads="other"), False),
        (replace(APPROVAL, settings="other"), False),
        (replace(APPROVAL, id="other", changes=()), True),
    ],
)
def test_an_approval_is_for_the_same_reads_and_settings(approval: Approval | None, same: bool) -> None:
    assert INPUTS.are_of(approval) is same


def test_a_run_that_ends_leaves_its_status_and_its_entry_in_front() -> None:
    result = Result("shop", Outcome.APPLIED, COMMIT.sha, "push", "2 objects written", {"created": 2}, run="r1")
    found = ended(state(), result, run_history.run_of(result, COMMIT, "ada", NOW), LATER)
    assert found.status == RunStatus("applied", PAST_NOON, {"created": 2}, message="2 objects written")
    (entry,) = found.history
    assert (entry.id, entry.started, entry.subject, entry.actor, entry.outcome) == ("r1", NOON, "Add web", "ada", "applied")
    second = replace(result, run="r2")
    assert ended(found, second, run_history.run_of(second, None, "", LATER), LATER).history[1] == entry


@pytest.mark.parametrize(
    ("status", "over", "since"),
    [
        (RunStatus("applied"), False, NOW),
        (RunStatus("waiting"), False, NOW),
        (RunStatus("failed", who="nobody"), False, NOW),
        (RunStatus("failed", who="author"), False, 0.0),
        (RunStatus("failed", who="author"), True, 0.0),
    ],
)
def test_a_failed_attempt_no_longer_waits_for_health(status: RunStatus, over: bool, since: float) -> None:
    waiting, attempt = WaitingFor(COMMIT.sha, "everything", NOON, over=over), Attempt("x", "y", "z", "token", NOON)
    found = standing(state(status=status, waiting=waiting, attempt=attempt), Result("shop", Outcome.FAILED, "", "tick"), LATER)
    assert found
    assert found.waiting == since


def test_only_the_held_id_is_approved() -> None:
    before = state(held=WAITING)
    assert asked(before, Job("shop", "oneoff", approve="h1", actor="ada"), None, NOW, corrects=True).approval == APPROVAL
    assert asked(before, Job("shop", "oneoff", approve="h0", actor="ada"), None, NOW, corrects=True) == before
    assert asked(state(), Job("shop", "oneoff", approve="h1", actor="ada"), None, NOW, corrects=True) == state()
    assert asked(before, Job("shop", "oneoff"), None, NOW, corrects=True) == before


def test_a_pin_is_set_or_ended_and_else_left_alone() -> None:
    pinned = state(pin=PIN)
    assert asked(state(), Job("shop", "oneoff"), PIN, NOW, corrects=True).pin == PIN
    assert asked(pinned, Job("shop", "oneoff", unpin=True), None, NOW, corrects=True).pin is None
    assert asked(pinned, Job("shop", "oneoff"), None, NOW, corrects=True).pin == PIN


@pytest.mark.parametrize(
    ("before", "job", "after"),
    [
        (None, Job("shop", "push"), None),
        (None, Job("shop", "oneoff", force=True, actor="ada"), NamedRequest("ada", NOON, force=True)),
        (None, Job("shop", "drift"), NamedRequest("drift", NOON, drift=True)),
        (NamedRequest("bob", "x", force=True), Job("shop", "drift"), NamedRequest("drift", NOON, force=True, drift=True)),
        (NamedRequest("bob", "x", drift=True), Job("shop", "oneoff", force=True), NamedRequest("oneoff", NOON, force=True, drift=True)),
        (NamedRequest("bob", "x", force=True), Job("shop", "push"), NamedRequest("bob", "x", force=True)),
    ],
)
def test_requests_on_the_record_are_merged_with_earlier_ones(before: NamedRequest | None, job: Job, after: NamedRequest | None) -> None:
    assert asked(state(requested=before), job, None, NOW, corrects=True).requested == after


def test_drift_that_is_only_reported_is_no_request() -> None:
    assert asked(state(), Job("shop", "drift"), None, NOW, corrects=False) == state()


def test_orphans_in_a_namespace_that_cant_be_read_are_kept() -> None:
    kept = (Orphan("u-gone", GONE, NOON),)
    assert record(state(orphans=kept), planned(scopes=("shop",)), DRIFT).orphans == kept
    assert record(state(orphans=kept), planned(scopes=("shop", "old")), DRIFT).orphans == ()
    assert record(state(orphans=kept), planned(), DRIFT).orphans == ()


UNMARKED = Orphan("u-stray", WEB, NOON, unmarked=True, until=stamp(NOW + 3600))


def test_a_record_keeps_what_a_plan_says_of_exclusive_namespaces_but_for_what_was_deleted() -> None:
    stray = Change(Action.PRUNE, WEB, "u-stray", "1", unmarked=True)
    found = replace(planned(), exclusive=ExclusiveFindings(orphans=(UNMARKED,)))
    before = state(orphans=(replace(UNMARKED, uid="u-forgotten"),))
    assert record(before, found, DRIFT).orphans == (UNMARKED,)
    gone = replace(planned(), plan=replace(planned().plan, prunes=(stray,)), exclusive=found.exclusive)
    assert record(before, gone, DRIFT).orphans == ()
    kept = replace(gone, plan=replace(gone.plan, prunes=(replace(stray, action=Action.SKIP),)))
    assert record(before, kept, DRIFT).orphans == (UNMARKED,), "once, and with its time"
    assert record(before, kept, DRIFT).namespaces == record(before, planned(), DRIFT).namespaces


def test_a_drift_run_is_due_when_the_first_grace_is_over() -> None:
    later, none = replace(UNMARKED, until=stamp(NOW + 7200)), replace(UNMARKED, until="")
    assert grace_due((later, UNMARKED, none), NOW, NOW) == NOW + 3600
    assert grace_due((UNMARKED,), NOW + 9000, NOW + 9000) == NOW + 9015, "what was due and wasn't deleted is no busy loop"
    assert grace_due((none,), NOW, NOW) == grace_due((), NOW, NOW) == 0.0


def test_a_worker_whose_clock_is_fast_waits_for_the_api_servers() -> None:
    assert grace_due((UNMARKED,), NOW + 9000, NOW) == NOW + 9000 + 3600
    assert grace_due((UNMARKED,), NOW + 3600.3, NOW + 3599.5) == NOW + 3615.3


@pytest.mark.parametrize(
    ("since", "seconds"),
    [((), 0), ((0,), 15), ((-60,), 15), ((100,), 100), ((9000,), 300), ((9000, 0), 15)],
    ids=["none", "just now", "its pods have a minute", "a while", "for ever", "the soonest counts"],
)
def test_a_terminating_declared_object_is_looked_at_with_back_off(since: tuple[int, ...], seconds: int) -> None:
    going = [replace(UPDATE, terminating=stamp(NOW - each)) for each in since]
    due = look_due(state(), planned(*going), NOW)
    assert due == (NOW + seconds if seconds else 0.0)


@pytest.mark.parametrize(("health", "judged"), [(TargetHealth("healthy", NOON, NOON), stamp(NOW)), (TargetHealth(), "")])
def test_recorded_health_holds_while_the_attempt_is_open(health: TargetHealth, judged: str) -> None:
    found = opened(state(health=health), INPUTS, planned(), "token", None, NOW)
    assert (found.health.state, found.health.judged) == (health.state, judged)
