"""A run of several rounds is reported as one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.model.errors import Problem
from handler.model.names import Identity
from handler.model.plan import Action, Change, FieldChange, Plan
from handler.model.result import Outcome, Result, net, summed, wrote

CREATE, UPDATE, RECREATE, PRUNE, UNCHANGED = Action.CREATE, Action.UPDATE, Action.RECREATE, Action.PRUNE, Action.UNCHANGED


def change(action: Action, name: str = "a", *fields: FieldChange) -> Change:
    return Change(action, Identity("", "ConfigMap", "shop", name), fields=fields)


def ended(outcome: Outcome, *changes: Change, message: str = "", notes: tuple[str, ...] = (), **more: Any) -> Result:
    """A round by its plan as it came out; one that failed has none."""
    plan = None if outcome is Outcome.FAILED else Plan("shop", "c" * 40, (changes,), notes=notes)
    written = () if outcome is Outcome.HELD else tuple(each for each in changes if each.writes)
    counts = plan.counts(done=outcome is not Outcome.HELD) if plan else {}
    said = message or (wrote(written) if outcome is Outcome.APPLIED else "")
    found = Result("shop", outcome, "c" * 40, "push", said, counts, duration=1.0, run="shop.1", plan=plan, written=written)
    return replace(found, **more)


def test_a_single_round_is_the_result_of_the_run() -> None:
    only = ended(Outcome.APPLIED, change(CREATE))
    assert summed([only]) is only


def test_rounds_keep_their_own_ends_also_where_the_run_ends_otherwise() -> None:
    first, last = ended(Outcome.APPLIED, change(CREATE)), ended(Outcome.UNCHANGED, commit="d" * 40, message="is applied")
    found = summed([first, last])
    ends = [("c" * 40, Outcome.APPLIED), ("d" * 40, Outcome.UNCHANGED)]
    assert [(each.commit, each.outcome) for each in found.rounds] == ends
    assert [each.commit for each in summed([found, last]).rounds] == ["c" * 40, "d" * 40, "d" * 40]
    assert [(each.commit, each.message) for each in last.rounds] == [("d" * 40, "is applied")]


def test_what_a_recovery_wrote_is_told_although_the_round_after_it_found_nothing_to_do() -> None:
    first = ended(Outcome.APPLIED, change(CREATE), change(UNCHANGED, "b"))
    last = ended(Outcome.UNCHANGED, change(UNCHANGED), change(UNCHANGED, "b"), message="live equals git")
    found = summed([first, last])
    assert (found.outcome, found.counts, found.message) == (Outcome.APPLIED, {"created": 1, "unchanged": 1}, "1 object written")
    assert [(str(each.identity), each.action) for each in found.written] == [("ConfigMap/shop/a", CREATE)]
    assert found.duration == 2.0


def test_a_round_that_ends_before_any_plan_leaves_the_counts_of_the_one_before() -> None:
    first = ended(Outcome.APPLIED, change(CREATE), change(UNCHANGED, "b"))
    found = summed([first, Result("shop", Outcome.UNCHANGED, run="shop.1", message="aaa is applied")])
    assert (found.outcome, found.counts) == (Outcome.APPLIED, {"created": 1, "unchanged": 1})


def test_rounds_that_found_nothing_to_do_are_unchanged() -> None:
    last = ended(Outcome.UNCHANGED, message="live equals git")
    found = summed([ended(Outcome.UNCHANGED), last])
    assert (found.outcome, found.message) == (Outcome.UNCHANGED, "live equals git")


def test_a_failure_stays_one_and_tells_what_the_rounds_before_it_wrote() -> None:
    failed = ended(Outcome.FAILED, change(UPDATE, "b"), message="no", problems=(Problem("X", "no"),), who="author", code="apply-failed")
    found = summed([ended(Outcome.APPLIED, change(CREATE)), failed])
    assert (found.outcome, found.code, found.who, found.message) == (Outcome.FAILED, "apply-failed", "author", "no")
    assert found.counts == {"created": 1, "configured": 1}


def test_a_failure_that_was_overcome_is_no_end() -> None:
    assert summed([ended(Outcome.FAILED, change(CREATE)), ended(Outcome.APPLIED, change(CREATE, "b"))]).outcome is Outcome.APPLIED
    assert summed([ended(Outcome.FAILED, change(CREATE)), ended(Outcome.UNCHANGED)]).outcome is Outcome.APPLIED, "it wrote"


def test_a_plan_that_waits_for_a_person_tells_both() -> None:
    found = summed([ended(Outcome.APPLIED, change(CREATE)), ended(Outcome.HELD, change(PRUNE), change(PRUNE, "b"), message="held as h1")])
    assert (found.outcome, found.counts) == (Outcome.HELD, {"created": 1, "to prune": 2})
    assert found.message == "held as h1; before that, 1 object written"
    assert [each.action for each in (*found.written, *found.left)] == [CREATE, PRUNE, PRUNE]


def test_the_run_has_the_id_and_the_cause_that_were_announced_and_the_notes_of_all() -> None:
    first = ended(Outcome.APPLIED, change(CREATE), notes=("one",), trigger="approval")
    last = ended(Outcome.APPLIED, change(UPDATE), notes=("one", "two"), run="shop.2", message="1 object written; and more")
    found = summed([first, last])
    assert (found.run, found.trigger, found.message) == ("shop.1", "approval", "1 object written; and more")
    assert found.plan is not None
    assert found.plan.notes == ("one", "two")


@pytest.mark.parametrize(
    ("first", "then", "both"),
    [
        (CREATE, UPDATE, CREATE),
        (CREATE, RECREATE, CREATE),
        (CREATE, CREATE, CREATE),
        (CREATE, PRUNE, PRUNE),
        (UPDATE, UPDATE, UPDATE),
        (UPDATE, RECREATE, RECREATE),
        (UPDATE, CREATE, CREATE),
        (UPDATE, PRUNE, PRUNE),
        (RECREATE, UPDATE, RECREATE),
        (RECREATE, PRUNE, PRUNE),
        (PRUNE, CREATE, RECREATE),
        (PRUNE, PRUNE, PRUNE),
    ],
)
def test_two_writes_of_one_object_are_one(first: Action, then: Action, both: Action) -> None:
    (found,) = net([change(first)], [change(then)])
    assert found.action is both


def test_a_field_that_two_rounds_changed_goes_from_what_it_was_to_what_it_is() -> None:
    first = change(UPDATE, "a", FieldChange("data.a", "2", "1", "kubectl-edit"), FieldChange("data.b", "x", "y"))
    then = change(UPDATE, "a", FieldChange("data.a", "3", "2", "anneal"), FieldChange("data.c", "new", ""))
    (found,) = net([first], [then])
    assert found.fields == (
        FieldChange("data.a", "3", "1", "kubectl-edit"),
        FieldChange("data.b", "x", "y"),
        FieldChange("data.c", "new", ""),
    )


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ([], "0 objects written"),
        ([CREATE], "1 object written"),
        ([CREATE, RECREATE, UPDATE, PRUNE, PRUNE], "3 objects written, 2 pruned"),
        ([PRUNE, PRUNE], "2 objects pruned"),
    ],
)
def test_a_deletion_is_no_object_written(actions: list[Action], said: str) -> None:
    assert wrote([change(action, f"c{number}") for number, action in enumerate(actions)]) == said
