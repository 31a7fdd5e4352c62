"""Whether the whole plan may run, and what an approval covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.config.settings import HoldAbove, Prune
from handler.model.errors import PlanRefused
from handler.model.names import Identity
from handler.model.plan import Action, Cause, Change, Due, FieldChange, Gone, Hold, Plan
from handler.plan.guards import Key, approved, hold_for, hold_id, lost_though_off, names_made_anew, refuse_empty
from tests.unit.plan.samples import desired, document, target


def change(action: Action, name: str) -> Change:
    return Change(action, Identity("", "ConfigMap", "shop", name), f"uid-{name}", "7")


def changes(**counts: int) -> list[Change]:
    """So many changes of each action: `changes(prune=3, update=1)`."""
    return [change(Action(action), f"{action}-{index}") for action, count in counts.items() for index in range(count)]


def plan(found: Sequence[Change]) -> Plan:
    return Plan("shop", "abc", (tuple(found),))


def hold(found: Sequence[Change], members: int, prune: Prune | None = None) -> Hold | None:
    return hold_for(plan(found), members, prune or Prune(), "reads", "settings", {})


def test_an_empty_render_is_refused_with_the_way_out() -> None:
    with pytest.raises(PlanRefused) as caught:
        refuse_empty("shop", 0, 7, Prune(), instance=False)
    assert str(caught.value) == (
        "target shop: the render declares no object (7 live members would go); "
        "set prune: {allowEmpty: true} if that is meant, or correct path and include"
    )


@pytest.mark.parametrize(("named", "seen"), [(["create-0"], "1 object has"), (["create-0", "create-1", "elsewhere"], "2 objects have")])
def test_objects_that_only_another_render_names_otherwise_wait(named: list[str], seen: str) -> None:
    renamed = {Identity("", "ConfigMap", "shop", name) for name in named}
    found = names_made_anew(changes(create=2, prune=2), renamed)
    assert found == {("render", "names", ""): f"{seen} another name at each render, and nothing else has changed: the notes say which"}
    held = hold_for(plan(changes(create=2, prune=2)), 9, Prune(), "reads", "settings", found)
    assert held is not None
    assert held.reasons == tuple(found.values())


def test_a_name_that_is_made_anew_and_lives_waits_for_nothing() -> None:
    assert names_made_anew(changes(update=1, prune=1), {Identity("", "ConfigMap", "shop", "update-0")}) == {}


def test_an_instance_may_declare_nothing_until_that_deletes_what_it_had() -> None:
    refuse_empty("shop.a.b", 0, 0, Prune(), instance=True)
    refuse_empty("shop", 0, 7, Prune(allow_empty=True), instance=False)
    refuse_empty("shop", 1, 0, Prune(), instance=False)
    with pytest.raises(PlanRefused):
        refuse_empty("shop.a.b", 0, 1, Prune(), instance=True)
    with pytest.raises(PlanRefused):
        refuse_empty("shop", 0, 0, Prune(), instance=False)


@pytest.mark.parametrize(
    ("counts", "members", "held"),
    [
        ({"prune": 11, "unchanged": 25}, 36, True),
        ({"prune": 10, "unchanged": 5}, 15, False),
        ({"prune": 11, "unchanged": 26}, 37, False),
        ({"recreate": 6, "prune": 5, "unchanged": 5}, 16, True),
        ({"skip": 90, "update": 90, "create": 90, "unchanged": 1}, 181, False),
        ({"prune": 3}, 3, True),
        ({"prune": 3, "skip": 1}, 4, False),
        ({"prune": 3, "create": 1}, 3, True),
        ({"prune": 1, "create": 1}, 1, False),
        ({"prune": 3, "recreate": 1}, 4, False),
        ({"skip": 3}, 3, False),
        ({}, 0, False),
        ({"recreate": 11}, 0, True),
    ],
)
def test_a_plan_is_held_above_both_hold_above_thresholds_or_when_nothing_is_left(counts: dict[str, int], members: int, held: bool) -> None:
    assert (hold(changes(**counts), members) is not None) is held


def test_a_hold_carries_the_numbers_and_exactly_what_would_go() -> None:
    found = hold(changes(prune=2, update=1), 4, Prune(hold_above=HoldAbove(1, 0.4)))
    assert found
    assert found.reasons == ("2 of 4 live objects would be deleted (50 %), above holdAbove 1 and 40%",)
    assert found.changes == (("prune", "ConfigMap/shop/prune-0", "uid-prune-0"), ("prune", "ConfigMap/shop/prune-1", "uid-prune-1"))
    assert found.id == hold_id(found.changes, "reads", "settings")


def test_an_approval_given_for_some_fields_that_go_does_not_hold_for_others() -> None:
    gone = [*changes(prune=2), replace(changes(update=1)[0], fields=(FieldChange("data.a", "", "1"),))]
    more = [*gone[:2], replace(gone[2], fields=(*gone[2].fields, FieldChange("data.b", "", "1")))]
    first, then, fewer = hold(gone, 2), hold(more, 2), hold(gone[:2], 2)
    assert first
    assert then
    assert fewer
    assert approved(first, first.changes, same_inputs=True)
    assert not approved(then, first.changes, same_inputs=True)
    assert approved(fewer, first.changes, same_inputs=True), "what was written of it since needs no second word"
    assert len({first.id, then.id, fewer.id}) == 3


@pytest.mark.parametrize(
    ("members", "said"),
    [
        (2, "all 2 live objects would be deleted, none of them is declared any more"),
        (1, "the only live object would be deleted, it isn't declared any more"),
    ],
)
def test_a_hold_says_that_nothing_would_be_left(members: int, said: str) -> None:
    found = hold(changes(prune=members), members)
    assert found
    assert found.reasons == (said,)


def test_what_makes_way_for_its_own_successor_is_neither_counted_nor_held_nor_refused_where_prune_is_off() -> None:
    one, other = (Identity("", "ConfigMap", "shop", name) for name in ("one", "other"))
    due = Due("PreSync", "one", one, "run", gone=(Gone(one, "u1", Cause.REPEATED, counted=False, is_member=True),))
    taken = Due("PreSync", "other", other, "run", gone=(Gone(other, "u2", Cause.HOOK, is_member=True),))
    both = replace(plan([]), due=(due, taken))
    held = hold_for(both, 1, Prune(), "reads", "settings", {})
    assert held
    assert (held.reasons, held.changes) == (("the only live object would be deleted",), (("lose", "ConfigMap/shop/other", "u2"),))
    off = target(prune=Prune(enabled=False))
    items = {item.identity: item for item in desired(document(name="other"))}
    (refused,) = lost_though_off(both, off, items)
    assert (refused.subject, refused.place) == ("ConfigMap/shop/other", "0.yaml:1")
    assert lost_though_off(both, target(), items) == []
    assert lost_though_off(replace(both, due=(due,)), off, items) == []


keys: st.SearchStrategy[Key] = st.tuples(st.sampled_from(["prune", "recreate"]), st.sampled_from("abcd"), st.sampled_from("uvw"))


@settings(max_examples=30, deadline=None)
@given(st.sets(keys), st.sets(keys))
def test_an_approval_covers_a_subset_and_nothing_else(held: set[Key], given_for: set[Key]) -> None:
    waiting = Hold("id", (), tuple(held))
    assert approved(waiting, tuple(given_for), same_inputs=True) is (held - given_for == set())
    assert not approved(waiting, tuple(given_for), same_inputs=False)


@settings(max_examples=30, deadline=None)
@given(st.lists(keys, unique=True).flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))), keys)
def test_a_hold_id_depends_on_the_held_changes_not_on_their_order(found: tuple[list[Key], list[Key]], other: Key) -> None:
    one, again = found
    assert hold_id(one, "r", "s") == hold_id(again, "r", "s")
    assert len({hold_id(one, "r", "s"), hold_id(one, "r2", "s"), hold_id(one, "r", "s2"), hold_id([*one, other], "r", "s")}) == 4
