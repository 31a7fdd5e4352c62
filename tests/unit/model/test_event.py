"""What is asked for while a run waits or works is coalesced, and nothing of it is lost."""

from __future__ import annotations

import pytest

from handler.model.event import Delivery, Job
from tests.unit.rows import each_row


def delivery(number: int) -> Delivery:
    return Delivery(str(number), "github", "refs/heads/main", "a" * 40, "ada", "2026-03-01T12:00:00Z")


@pytest.mark.parametrize(
    ("older", "newer", "merged"),
    [
        (Job("shop", "push", hint="a"), Job("shop", "tick"), Job("shop", "push", hint="a")),
        (Job("shop", "push", hint="a"), Job("shop", "push", hint="b"), Job("shop", "push", hint="b")),
        (Job("shop", "drift"), Job("shop", "push", hint="b"), Job("shop", "drift", hint="b")),
        (Job("shop", "tick"), Job("shop", "drift"), Job("shop", "drift")),
        (Job("shop", "replay", actor="ada"), Job("shop", "tick"), Job("shop", "replay", actor="ada")),
        (
            Job("shop", "replay", actor="ops"),
            Job("shop", "push", hint="b", actor="ada"),
            Job("shop", "replay", hint="b", actor="ops"),
        ),
        (Job("shop", "push", hint="a", actor="ada"), Job("shop", "replay", actor="ops"), Job("shop", "replay", hint="a", actor="ops")),
        (Job("shop", "replay", actor="ops"), Job("shop", "replay", actor="ci"), Job("shop", "replay", actor="ci")),
        (Job("shop", "replay", actor="ops"), Job("shop", "drift"), Job("shop", "drift", actor="ops")),
    ],
)
def test_two_requests_become_one_that_asks_for_both(older: Job, newer: Job, merged: Job) -> None:
    assert older.merged(newer) == merged
    assert merged.drift is (merged.trigger == "drift")


ASKED = (
    Job("shop", "replay", commit="c"),
    Job("shop", "replay", force=True),
    Job("shop", "replay", approve="h"),
    Job("shop", "replay", unpin=True),
    Job("shop", "replay", dry_run=True),
    Job("shop", "oneoff", prune=False),
)


@each_row("other", [Job("shop", "push", hint="a"), Job("shop", "tick"), Job("shop", "replay"), *ASKED])
@each_row("asked", ASKED)
def test_a_named_request_is_merged_with_nothing(asked: Job, other: Job) -> None:
    for older, newer in ((asked, other), (other, asked)):
        with pytest.raises(AssertionError, match="only plain jobs"):
            older.merged(newer)


def plan(comments: str = "", actor: str = "ada", *, changed: bool = False) -> Job:
    return Job("shop~12", "pull-request", comments=tuple(comments), actor=actor, changed=changed)


@pytest.mark.parametrize(
    ("older", "newer", "merged"),
    [
        (plan(), plan(actor="bob"), plan(actor="bob")),
        (plan("6"), plan("7", "bob"), plan("67", "bob")),
        (plan("6"), plan(actor="bob"), plan("6", "bob", changed=True)),
        (plan(), plan("7", "bob"), plan("7", "bob", changed=True)),
        (plan("6", changed=True), plan("7", "bob"), plan("67", "bob", changed=True)),
        (plan("6"), plan("7", "bob", changed=True), plan("67", "bob", changed=True)),
        (plan("67"), plan("7", "bob"), plan("67", "bob")),
        (plan("0123456789"), plan("ab", "bob"), plan("01234789ab", "bob")),
    ],
)
def test_of_two_wishes_for_a_plan_neither_comments_nor_changes_are_lost(older: Job, newer: Job, merged: Job) -> None:
    assert older.merged(newer) == merged
    assert merged.is_plan


@pytest.mark.parametrize("other", [Job("shop~12", "push", hint="a"), Job("shop~12", "tick"), Job("shop~12", "replay")], ids=str)
def test_a_plan_is_merged_with_plans_alone(other: Job) -> None:
    for older, newer in ((plan(), other), (other, plan())):
        with pytest.raises(AssertionError, match="only plain jobs"):
            older.merged(newer)


def test_a_job_names_what_is_asked_by_name() -> None:
    assert [job.acts for job in ASKED] == [("commit",), ("force",), ("approve",), ("unpin",), ("dry run",), ("no prune",)]
    assert Job("shop", "replay", hint="a", actor="ops", deliveries=(delivery(1),)).acts == ()
    assert Job("shop", "replay", commit="c", dry_run=True).acts == ("commit", "dry run")


def test_the_last_twenty_deliveries_are_kept() -> None:
    older = Job("shop", "push", deliveries=tuple(delivery(number) for number in range(15)))
    newer = Job("shop", "push", deliveries=tuple(delivery(number) for number in range(15, 30)))
    assert [int(each.id) for each in older.merged(newer).deliveries] == list(range(10, 30))


@pytest.mark.parametrize(
    ("job", "cause"),
    [
        (Job("shop", "replay"), "replay"),
        (Job("shop", "replay", approve="h"), "approval"),
        (Job("shop", "oneoff", approve="h", force=True), "approval"),
        (Job("shop", "oneoff", rollback=True), "rollback"),
        (Job("shop", "replay", rollback=True, commit="c"), "rollback"),
        (Job("shop", "replay", unpin=True), "unpin"),
        (Job("shop", "oneoff", commit="c"), "oneoff"),
        (Job("shop", "push"), "push"),
    ],
)
def test_reports_call_a_request_by_its_act(job: Job, cause: str) -> None:
    assert job.cause == cause
