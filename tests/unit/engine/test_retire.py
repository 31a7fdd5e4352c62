"""A retirement: what is deleted and what let go, in which order, what refuses it, and how it goes on after a death at any write."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.app.retiring import exclusive_notes
from handler.config.settings import Cluster
from handler.engine.retire import Retire, Retired
from handler.engine.run.errors import EndUnsure, RequestRefused
from handler.model.errors import AccessDenied, Busy, PlanRefused, TargetMoved
from handler.model.names import FIELD_MANAGER, IDENTITY, PART_OF, Identity
from handler.model.result import Outcome
from handler.state.record_values import RecordName
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.fakes.apiserver.server import Asked
from tests.unit.engine.in_memory_cluster import refusing
from tests.unit.engine.renamed_targets import FORBIDDEN, NEW, OLD, PROTECTED, Renamed, by_namespaces, identity, mapped, writes

pytestmark = pytest.mark.slow

SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "jobs"}}
ONE, KEPT, JOB = mapped("one"), mapped("kept", annotations=PROTECTED), mapped("job", "jobs")
RECORD = Identity("", "ConfigMap", "anneal-system", "anneal-shop")


@pytest.fixture
def shop() -> Renamed:
    """One that has an object which may be deleted in each of two namespaces, a protected one, and the second of these namespaces."""
    made = Renamed()
    made.planted(ONE, KEPT, JOB, SPACE)
    return made


def carried_out(retire: Retire) -> Retired:
    return retire.carry_out(retire.look(), threading.Event())


def names(changes: tuple[Any, ...]) -> set[str]:
    return {change.identity.name for change in changes}


def test_it_shows_what_goes_and_what_stays_and_changes_nothing(shop: Renamed) -> None:
    since = len(shop.server.store.log)
    shown = shop.retire().look()
    assert (names(shown.going), names(shown.staying)) == ({"one", "job"}, {"kept", "jobs"})
    kept = shop.retire(prune=False).look()
    assert (names(kept.going), names(kept.staying)) == (set(), {"one", "job", "kept", "jobs"})
    assert len(shop.server.store.log) == since


def test_what_may_go_is_deleted_the_rest_is_let_go_and_the_record_goes_last(shop: Renamed) -> None:
    since = len(shop.server.store.log)
    done = carried_out(shop.retire())
    assert (names(done.done), done.left, done.ended) == ({"one", "job", "kept", "jobs"}, (), True)
    assert (shop.body(identity("one")), shop.body(identity("job", "jobs"))) == (None, None)
    for which in (identity("kept"), identity("jobs", "", "Namespace")):
        metadata = (shop.body(which) or {})["metadata"]
        assert (PART_OF in metadata.get("labels", {}), IDENTITY in metadata.get("annotations", {})) == (False, False)
        owned = [entry for entry in metadata["managedFields"] if entry["manager"] == FIELD_MANAGER]
        assert all(entry["fieldsV1"].keys() <= {"f:metadata"} for entry in owned)
    written = [write.identity for write in shop.server.store.log[since:]]
    assert written[-2:] == [RECORD, replace(RECORD, group="coordination.k8s.io", kind="Lease")]
    assert shop.has_record("shop") == (False, False)


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("done", [True, False])
def test_one_that_dies_at_any_write_is_finished_by_the_same_again(prune: bool, done: bool) -> None:
    number, died = 0, True
    while died:
        number += 1
        shop = Renamed()
        before = shop.planted(ONE, KEPT, JOB)
        died = shop.dies_at(number, lambda shop=shop: carried_out(shop.retire(prune=prune)), done=done)
        if shop.has_record("shop")[0]:
            carried_out(shop.retire(prune=prune))
        assert (shop.marked("shop"), shop.has_record("shop")[0]) == (set(), False)
        assert shop.uids() == ({identity("kept"): before[identity("kept")]} if prune else before)
    assert number > 5


def test_what_came_after_it_was_shown_is_left_with_the_record(shop: Renamed) -> None:
    retire = shop.retire()
    shown = retire.look()
    shop.mark(mapped("late"))
    done = retire.carry_out(shown, threading.Event())
    assert (done.left, done.ended, shop.has_record("shop")[0]) == ((identity("late"),), False, True)
    assert shop.body(identity("late"))
    assert carried_out(shop.retire()).ended


def test_what_would_take_along_more_than_was_shown_ends_nothing(shop: Renamed) -> None:
    retire = shop.retire()
    shown, before = retire.look(), shop.uids()
    late = mapped("late")
    late["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": before[identity("one")]}]
    shop.mark(late)
    with pytest.raises(EndUnsure, match="ConfigMap/shop/one would take along more than when it was shown"):
        retire.carry_out(shown, threading.Event())
    assert before.items() <= shop.uids().items()


def test_what_a_configured_target_declares_keeps_what_would_take_it_along(shop: Renamed) -> None:
    below = mapped("below")
    below["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": shop.uids()[identity("one")]}]
    shop.mark(below)
    retire = shop.retire()
    assert [gone.identity.name for change in retire.look().going for gone in change.takes] == ["below"]
    retire.claims = lambda asked: {each: "target bank declares it" for each in asked if each == identity("below")}
    assert names(retire.look().going) == {"job"}
    assert carried_out(retire).ended
    assert shop.body(identity("below"))


def test_keep_lets_go_of_a_namespace_that_may_be_deleted() -> None:
    shop = Renamed()
    shop.planted(JOB, {**SPACE, "metadata": {"name": "jobs", "annotations": {"anneal.dev/prune": "allow"}}})
    assert carried_out(shop.retire(prune=False)).ended
    assert shop.body(identity("jobs", "", "Namespace"))


def test_what_is_protected_after_it_was_shown_is_let_go(shop: Renamed) -> None:
    retire = shop.retire()
    shown = retire.look()
    shop.touch(identity("one"), **PROTECTED)
    assert retire.carry_out(shown, threading.Event()).ended
    assert PART_OF not in (shop.body(identity("one")) or {})["metadata"].get("labels", {})


SAID = 'secrets is forbidden: User "shop" cannot list resource "secrets" in API group "" in the namespace "jobs"'


def unreadable(call: Call, do: Callable[[], Reply]) -> Reply:
    """Refuse to list the Secrets of a namespace."""
    asks = call.asked.method == "GET" and call.asked.path == "/api/v1/namespaces/jobs/secrets"
    return (403, {**FORBIDDEN, "message": SAID}, {}) if asks else do()


def test_while_what_a_namespace_holds_cant_be_read_nothing_ends(shop: Renamed) -> None:
    shop.meet, since = unreadable, len(shop.server.store.log)
    with pytest.raises(EndUnsure, match="whether Namespace/jobs may go isn't known: what it holds could not be read"):
        shop.retire(kinds=("Namespace",)).look()
    assert len(shop.server.store.log) == since
    assert carried_out(shop.retire()).ended, "it was named by nobody, and is let go"


def test_what_cant_be_read_any_more_is_left_with_the_record(shop: Renamed) -> None:
    retire = shop.retire(kinds=("Namespace",))
    retire.wrote = lambda _: setattr(shop, "meet", unreadable)
    done = carried_out(retire)
    assert (done.left, done.ended) == ((identity("jobs", "", "Namespace"),), False)
    assert (shop.marked("shop"), shop.has_record("shop")[0]) == ({"jobs"}, True)
    shop.meet = straight
    assert carried_out(shop.retire(kinds=("Namespace",))).ended
    assert shop.body(identity("jobs", "", "Namespace")) is None


def test_what_moves_while_it_is_let_go_is_read_again(shop: Renamed) -> None:
    moved = shop.touch_amid("kept")
    assert carried_out(shop.retire()).ended
    assert moved
    metadata = (shop.body(identity("kept")) or {})["metadata"]
    assert (metadata["annotations"]["by"], PART_OF in metadata.get("labels", {})) == ("hand", False)


def test_what_a_policy_keeps_from_being_let_go_keeps_the_record(shop: Renamed) -> None:
    shop.meet = refusing(writes("kept"), 422, "denied request: labels may not change")
    with pytest.raises(PlanRefused, match="labels may not change"):
        carried_out(shop.retire())
    assert (shop.marked("shop"), shop.has_record("shop")[0]) == ({"kept"}, True)


@pytest.mark.parametrize(
    ("parts", "error", "seen"),
    [
        ({"renamed_to": RecordName("store", "anneal-system")}, RequestRefused, "anneal apply store"),
        ({"former": RecordName("bank", "anneal-system")}, RequestRefused, "configure it until `anneal apply shop` has, then retire it"),
        ({"installation": "second"}, RequestRefused, "belongs to installation second, this one is default"),
        ({"installation": "second", "renamed_to": RecordName("store", "gitops")}, RequestRefused, "belongs to installation second"),
        ({"cluster_uid": "another"}, TargetMoved, "its record is of another cluster"),
    ],
)
def test_a_record_that_is_anothers_or_amid_a_takeover_is_left_alone(shop: Renamed, parts: Any, error: type[Exception], seen: str) -> None:
    shop.handler(OLD).store(OLD).update(lambda state: replace(state, **parts))
    since = len(shop.server.store.log)
    with pytest.raises(error, match=seen):
        shop.retire().look()
    assert len(shop.server.store.log) == since


def test_a_takeover_that_was_taken_back_before_it_began_leaves_nothing() -> None:
    shop = Renamed()
    before = shop.planted(ONE)
    shop.dies_once(lambda: "store" in shop.open_records())
    done = carried_out(shop.retire(NEW))
    assert (done.done, done.ended, shop.has_record("store")[0], shop.uids()) == ((), True, False, before)
    assert shop.marked("shop") == {"one"}


def test_what_the_record_of_another_installation_says_is_of_a_namesake(shop: Renamed) -> None:
    shop.planted(ONE)
    bank, us = RecordName("bank", "anneal-system"), RecordName("shop", "anneal-system")
    store = shop.handler(replace(OLD, name="bank")).store(replace(OLD, name="bank"))
    store.create(replace(store.blank("u"), installation="second", renamed_to=us))
    shop.handler(OLD).store(OLD).update(lambda state: replace(state, former=bank))
    assert carried_out(shop.retire()).ended
    assert shop.has_record("bank")[0]


def test_of_one_namespace_only_what_is_in_it_ends(shop: Renamed) -> None:
    done = carried_out(shop.retire(namespace="jobs"))
    assert (names(done.done), done.ended) == ({"job"}, False)
    assert shop.marked("shop") == {"one", "kept", "jobs"}
    state = shop.handler(OLD).store(OLD).read().state
    assert state
    assert ("jobs" in state.namespaces, [each.namespace for each in state.declared if each.namespace == "jobs"]) == (False, [])


def test_a_namespace_that_is_gone_holds_nothing_under_rights_by_namespace(shop: Renamed) -> None:
    shop.server.answer(Asked("DELETE", "/api/v1/namespaces/jobs", {}, {}, "", ""))
    shop.meet = by_namespaces("shop", "anneal-system", cluster_wide=("namespaces",))
    assert carried_out(shop.retire()).ended
    assert shop.body(identity("one")) is None


def test_a_namespace_that_may_not_be_read_ends_nothing(shop: Renamed) -> None:
    shop.meet = by_namespaces("shop", "anneal-system", cluster_wide=("namespaces",))
    with pytest.raises(AccessDenied, match="if the namespace is gone, let that be seen"):
        shop.retire().look()


def test_nothing_is_asked_of_the_records_namespace_where_it_has_no_objects(shop: Renamed) -> None:
    shop.meet = by_namespaces("shop", "jobs", records="anneal-system", cluster_wide=("namespaces",))
    assert carried_out(shop.retire()).ended


@pytest.mark.parametrize(("space", "warned"), [("shop", True), ("other", False)])
def test_an_exclusive_namespace_that_would_delete_what_stays_is_named(shop: Renamed, space: str, warned: bool) -> None:
    heir = replace(NEW, renamed_from="", exclusive=(space,), namespaces=(space,))
    handler = shop.handler(heir)
    staying = shop.retire(prune=False).look().staying
    found = list(exclusive_notes(handler, handler.settings, replace(OLD, cluster=Cluster()), staying))
    assert [f"target store has {space} as `exclusive`" in each and "3600 s (`orphanGrace`)" in each for each in found] == [True] * warned


def test_what_another_target_waits_to_take_over_is_refused_until_that_ends() -> None:
    both = Renamed()
    declared = [mapped(f"c-{number}") for number in range(30)]
    both.planted(*declared)
    both.push(*declared[:3])
    assert both.run().outcome is Outcome.HELD
    with pytest.raises(RequestRefused, match="is taken over by target store"):
        both.retire(OLD).look()
    assert len(both.uids()) == 30
    waits = both.retire(NEW)
    waits.carry_out(waits.look(), threading.Event())
    assert len(both.uids()) == 30
    assert len(both.retire(OLD).look().going) == 30


def test_a_living_holder_of_the_lease_makes_it_busy(shop: Renamed) -> None:
    asked = replace(shop.retire(), lease_duration=0.2)
    before = shop.uids()
    with shop.handler(OLD).lock(OLD).acquire(), pytest.raises(Busy):
        asked.carry_out(asked.look(), threading.Event())
    assert (shop.uids(), shop.has_record("shop")) == (before, (True, True))
