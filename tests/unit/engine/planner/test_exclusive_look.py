"""A plan of a target with exclusive namespaces: what it shows, what it deletes and when, on a cluster in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import HoldAbove
from handler.engine.planner import exclusive_look
from handler.engine.planner.exclusive_look import DeclaredObjects, ExclusiveRequest
from handler.engine.planner.exclusive_needs import Needs
from handler.engine.planner.siblings import SiblingQuestions
from handler.model.names import PART_OF, GroupKind, Identity
from handler.model.plan import Action, Change
from handler.state.record import Orphan
from handler.state.record_format import seconds_of, stamp
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.unit.engine.apply.planned_target import MAPS, TARGET, PlannedTarget, before, config_map, ours
from tests.unit.engine.planner.watched_namespace import EXCLUSIVE, HOUR, NOON, Watched, due, stray

pytestmark = pytest.mark.slow

AFTER = f"isn't declared in exclusive namespace shop; deleted after {stamp(NOON + HOUR)}"
SINCE = f"isn't declared in exclusive namespace shop since {stamp(NOON)}"


def test_an_undeclared_object_is_shown_with_its_time_then_deleted_after_it_and_no_earlier(watched: Watched) -> None:
    stray(watched)
    assert watched.run(config_map("web")) == [(Action.SKIP, "stray", AFTER)]
    assert [change.expires for change in watched.plan(config_map("web")).plan.prunes] == [True]
    watched.now += HOUR - 1
    assert watched.run(config_map("web")) == [(Action.SKIP, "stray", AFTER)]
    watched.now += 1
    assert watched.run(config_map("web")) == [(Action.PRUNE, "stray", SINCE)]
    assert (watched.shop.live("stray"), watched.orphans) == (None, ())
    assert watched.shop.live("web")


def forged(watched: Watched) -> float:
    """Say in the record that a new object was seen long ago, and may go; return when it was created."""
    metadata = stray(watched)["metadata"]
    watched.orphans = (Orphan(metadata["uid"], Identity("", "ConfigMap", "shop", "stray"), stamp(0.0), unmarked=True, until=stamp(1.0)),)
    return seconds_of(metadata["creationTimestamp"])


@pytest.mark.parametrize("later", [0.0, 500.0], ids=["object", "record"])
def test_a_forged_time_ends_no_grace_before_the_object_and_the_record_are_as_old_as_that(watched: Watched, later: float) -> None:
    born = forged(watched) + later
    watched.now = born + HOUR - 1
    assert [each[0] for each in watched.run(config_map("web"), born=born)] == [Action.SKIP]
    watched.now += 1
    assert [each[0] for each in watched.run(config_map("web"), born=born)] == [Action.PRUNE]


def test_a_process_that_lives_on_believes_its_own_sightings_alone(watched: Watched) -> None:
    planner = watched.shop.planner
    watched.shop.planner = replace(planner, lives_on=True)
    forged(watched)
    assert [each[0] for each in watched.run(config_map("web"))] == [Action.SKIP]
    watched.now += HOUR / 2
    assert [each[0] for each in watched.run(config_map("web"))] == [Action.SKIP]
    watched.shop.planner = replace(planner, lives_on=True)  # a restart begins the grace anew
    assert [each[0] for each in watched.run(config_map("web"))] == [Action.SKIP]
    watched.now += HOUR / 2
    assert [each[0] for each in watched.run(config_map("web"))] == [Action.SKIP]
    watched.now += HOUR / 2
    assert [each[0] for each in watched.run(config_map("web"))] == [Action.PRUNE]


def test_a_dry_run_begins_no_grace_and_promises_no_time(watched: Watched) -> None:
    stray(watched)
    (change,) = watched.plan(config_map("web"), records=False).plan.prunes
    assert (change.action, change.until, change.expires) == (Action.SKIP, "", True)
    assert change.reason.endswith("; deleted orphanGrace (3600 s) after the next drift run has noted it")


def test_a_run_that_does_not_look_asks_nothing_and_keeps_what_is_known(watched: Watched) -> None:
    stray(watched)
    watched.run(config_map("web"))
    known = watched.orphans
    asked: list[str] = []

    def noted(call: Call, do: Callable[[], Reply]) -> Reply:
        asked.append(call.asked.query.get("labelSelector", ""))
        return do()

    watched.shop.meet = noted
    watched.now += 2 * HOUR
    assert watched.run(config_map("web"), looks=False) == []
    assert watched.orphans == known
    assert f"!{PART_OF}" not in asked
    assert watched.run(config_map("web"), looks=False, kept="prune is off") == []
    assert watched.orphans == (replace(known[0], until=""),)


def test_what_git_declares_meanwhile_is_no_orphan_any_more(watched: Watched) -> None:
    uid = stray(watched)["metadata"]["uid"]
    watched.run(config_map("web"))
    assert watched.names() == ["stray"]
    watched.run(config_map("web"), config_map("stray"), looks=False)
    assert watched.orphans == ()
    watched.now += 2 * HOUR
    assert watched.run(config_map("web"), config_map("stray")) == []
    watched.shop.apply(watched.plan(config_map("web"), config_map("stray")))
    live = watched.shop.live("stray")
    assert live
    assert (live["metadata"]["uid"], PART_OF in live["metadata"]["labels"]) == (uid, True)


def test_a_new_object_of_the_same_name_has_a_grace_of_its_own(watched: Watched) -> None:
    stray(watched)
    watched.run(config_map("web"))
    watched.shop.delete("stray")
    stray(watched)
    watched.now += 2 * HOUR
    ((action, _, reason),) = watched.run(config_map("web"))
    assert (action, reason.endswith(stamp(watched.now + HOUR))) == (Action.SKIP, True)


def test_what_was_gone_for_one_look_begins_anew(watched: Watched) -> None:
    stray(watched)
    watched.run(config_map("web"))
    watched.shop.delete("stray")
    watched.now += 60
    assert watched.run(config_map("web")) == []
    assert watched.orphans == ()


def test_a_kind_that_can_not_be_listed_loses_nothing_and_its_grace_begins_again(watched: Watched) -> None:
    stray(watched)
    watched.run(config_map("web"))

    def denied(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.query.get("labelSelector") == f"!{PART_OF}" and call.asked.path.endswith("/configmaps"):
            return 403, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "message": "no"}, {}
        return do()

    watched.shop.meet = denied
    watched.now += 2 * HOUR
    planned = watched.plan(config_map("web"))
    assert planned.plan.prunes == ()
    assert any(note.startswith("ConfigMap of namespace shop can't be listed, so none of them is an orphan") for note in planned.plan.notes)
    assert watched.run(config_map("web")) == []
    assert [each.until for each in watched.orphans] == [stamp(watched.now + HOUR)]
    watched.shop.meet = lambda _, do: do()
    watched.now += HOUR - 1
    assert [action for action, *_ in watched.run(config_map("web"))] == [Action.SKIP]
    watched.now += 1
    assert [action for action, *_ in watched.run(config_map("web"))] == [Action.PRUNE]


def test_a_kind_of_a_group_that_does_not_answer_keeps_its_orphans(watched: Watched) -> None:
    known = Orphan("9", Identity("acme.io", "Offer", "shop", "offer"), stamp(NOON), unmarked=True, until=stamp(NOON + HOUR))
    watched.orphans = (known,)

    def dead(call: Call, do: Callable[[], Reply]) -> Reply:
        status, body, more = do()
        if call.asked.path == "/apis":
            body["items"].append({"metadata": {"name": "acme.io"}, "versions": [{"version": "v1", "freshness": "Stale"}]})
        return status, body, more

    watched.shop.meet = dead
    watched.now += 2 * HOUR
    assert watched.run(config_map("web")) == []
    assert watched.orphans == (replace(known, until=stamp(watched.now + HOUR)),)


@pytest.mark.parametrize("kept", ["prune is off", "drift is report", "drift is ignore"])
def test_where_nothing_may_be_deleted_orphans_are_only_shown(watched: Watched, kept: str) -> None:
    stray(watched)
    for _ in range(2):
        said = f"isn't declared in exclusive namespace shop; kept: {kept}"
        assert watched.run(config_map("web"), kept=kept) == [(Action.SKIP, "stray", said)]
        assert [(each.identity.name, each.until) for each in watched.orphans] == [("stray", "")]
        watched.now += 2 * HOUR
    ((action, _, reason),) = watched.run(config_map("web"))
    assert (action, reason.endswith(stamp(watched.now + HOUR))) == (Action.SKIP, True), "its grace begins once it may go"


def test_a_protected_object_stays_and_its_grace_begins_once_that_is_lifted(watched: Watched) -> None:
    stray(watched, annotations={"anneal.dev/prune": "disabled"})
    for _ in range(2):
        ((action, _, reason),) = watched.run(config_map("web"))
        assert (action, reason.endswith("kept: protected by anneal.dev/prune: disabled")) == (Action.SKIP, True)
        watched.now += 2 * HOUR
    watched.shop.patch("stray", metadata={"annotations": {"anneal.dev/prune": None}})
    ((action, _, reason),) = watched.run(config_map("web"))
    assert (action, reason.endswith(f"deleted after {stamp(watched.now + HOUR)}")) == (Action.SKIP, True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"metadata": {"annotations": {"anneal.dev/prune": "disabled"}}}, "is left alone: protected by anneal.dev/prune: disabled"),
        ({"metadata": {"labels": {PART_OF: "applyset-other-v1"}}}, "is left alone: members of ApplySets"),
        (
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}]}},
            "is left alone: owned by Pod a",
        ),
    ],
)
def test_an_orphan_that_is_kept_by_what_it_is_right_before_its_deletion_stays(watched: Watched, change: Any, reason: str) -> None:
    stray(watched)
    due(watched)
    watched.shop.meet = before("DELETE", "stray", lambda: watched.shop.patch("stray", **change))
    assert watched.run(config_map("web")) == [(Action.SKIP, "stray", reason)]
    assert watched.shop.live("stray")


def test_an_orphan_that_was_written_meanwhile_is_judged_again_and_goes(watched: Watched) -> None:
    stray(watched)
    due(watched)
    watched.shop.meet = before("DELETE", "stray", lambda: watched.shop.patch("stray", data={"key": "2"}))
    assert watched.run(config_map("web")) == [(Action.PRUNE, "stray", SINCE)]
    assert watched.shop.live("stray") is None


def test_another_object_of_the_same_name_is_not_deleted_in_its_stead(watched: Watched) -> None:
    stray(watched)
    due(watched)

    def replaced() -> None:
        watched.shop.delete("stray")
        stray(watched)

    watched.shop.meet = before("DELETE", "stray", replaced)
    watched.run(config_map("web"))
    assert watched.shop.live("stray")


def test_many_orphans_beside_few_members_are_held(watched: Watched) -> None:
    watched.shop.target = replace(EXCLUSIVE, prune=replace(EXCLUSIVE.prune, hold_above=HoldAbove(3, 0.5)))
    watched.shop.planner.target = watched.shop.target
    for number in range(5):
        stray(watched, f"stray-{number}")
    assert watched.plan(config_map("web")).plan.hold is None
    due(watched)
    hold = watched.plan(config_map("web")).plan.hold
    assert hold
    assert len(hold.changes) == 5
    assert "5 objects that git doesn't declare would be deleted in exclusive namespace shop, beside 1 member: above" in hold.reasons[0]


def test_orphans_are_no_members(watched: Watched) -> None:
    watched.shop.post(
        "/api/v1/namespaces/shop/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop"}}
    )
    due(watched)
    planned = watched.plan(config_map("web"))
    assert [change.action for change in planned.plan.prunes] == [Action.PRUNE]
    assert (planned.plan.live_members, planned.plan.hold, planned.present) == (1, None, frozenset({GroupKind("", "ConfigMap")}))


def test_a_member_that_git_dropped_is_pruned_at_once(watched: Watched) -> None:
    watched.shop.post(MAPS, ours(config_map("dropped")))
    assert watched.run(config_map("web")) == [(Action.PRUNE, "dropped", "no longer declared")]


def test_a_record_keeps_no_more_than_it_has_room_for(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exclusive_look, "MOST", 2)
    for name in ("d", "c"):
        stray(watched, name)
    watched.run(config_map("web"))
    for name in ("a", "b"):
        stray(watched, name)
    watched.now += HOUR
    found = watched.run(config_map("web"))
    assert {name: action for action, name, _ in found} == {"a": Action.SKIP, "b": Action.SKIP, "c": Action.PRUNE, "d": Action.PRUNE}
    assert watched.orphans == ()
    watched.run(config_map("web"))
    assert watched.names() == ["a", "b"]


def test_the_namespace_of_the_handlers_own_workload_is_left_alone_unless_git_declares_it(watched: Watched) -> None:
    stray(watched)
    planned = watched.plan(config_map("web"), own="shop/anneal")
    assert planned.plan.prunes == ()
    assert any("namespace shop holds the workload of this very handler" in note for note in planned.plan.notes)
    assert [each.identity.name for each in watched.plan(config_map("web"), own="shop/web").plan.prunes] == ["stray"]
    assert [each.identity.name for each in watched.plan(config_map("web"), own="other/anneal").plan.prunes] == ["stray"]


def listed_as(watched: Watched, **metadata: Any) -> None:
    """Have every Secret of the namespace come with this metadata."""

    def changed(call: Call, do: Callable[[], Reply]) -> Reply:
        status, body, more = do()
        for item in body.get("items", []) if call.asked.path.endswith("/secrets") else []:
            item["metadata"] |= metadata
        return status, body, more

    watched.shop.meet = changed


SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "alias", "namespace": "shop"}}


def test_an_object_that_two_kinds_serve_counts_once(watched: Watched) -> None:
    uid = stray(watched)["metadata"]["uid"]
    watched.shop.post("/api/v1/namespaces/shop/secrets", SECRET)
    assert len(watched.plan(config_map("web")).plan.prunes) == 2
    listed_as(watched, uid=uid)
    assert [each.identity.kind for each in watched.plan(config_map("web")).plan.prunes] == ["ConfigMap"]
    assert watched.plan(config_map("web"), config_map("stray")).plan.prunes == (), "declared as one of the two"


def test_what_git_declares_as_another_kind_is_no_orphan_by_its_uid(watched: Watched) -> None:
    live = stray(watched)
    look, ask = watched.shop.planner.exclusive, replace(watched.ask, now=NOON)
    assert [each.uid for each in look.find(ask, DeclaredObjects(), SiblingQuestions(EXCLUSIVE)).orphans] == [live["metadata"]["uid"]]
    known = DeclaredObjects(uids={live["metadata"]["uid"]})
    assert look.find(ask, known, SiblingQuestions(EXCLUSIVE)).orphans == ()


def test_what_git_declares_right_before_its_deletion_stays(watched: Watched) -> None:
    live = stray(watched)
    due(watched)
    (change,) = (each for each in watched.plan(config_map("web")).plan.prunes if each.action is Action.PRUNE)
    again = watched.shop.planner.exclusive.judged_again(change, live, {change.identity}, Needs())
    assert (again.action, again.reason) == (Action.SKIP, "is left alone: is declared")


@pytest.mark.parametrize("metadata", [{"uid": ""}, {"resourceVersion": ""}, {"namespace": "other"}], ids=str)
def test_what_an_api_serves_without_uid_or_version_or_of_another_namespace_is_passed_over(watched: Watched, metadata: Any) -> None:
    watched.shop.post("/api/v1/namespaces/shop/secrets", SECRET)
    assert len(watched.plan(config_map("web")).plan.prunes) == 1
    listed_as(watched, **metadata)
    assert watched.plan(config_map("web")).plan.prunes == ()


def test_other_namespaces_are_only_listed(watched: Watched) -> None:
    target = replace(TARGET, namespaces=("shop", "jobs"))
    shop = Watched(PlannedTarget(target), ask=ExclusiveRequest(looks=True, beside=("shop",)))
    shop.shop.apply(shop.shop.plan(config_map("web")))
    stray(shop)
    planned = shop.plan(config_map("web"))
    assert planned.plan.prunes == ()
    assert [each.identity.name for each in planned.exclusive.beside] == ["stray"]
    assert (planned.exclusive.orphans, planned.exclusive.changes) == ((), ())


def test_of_many_other_namespaces_the_first_are_looked_through(watched: Watched) -> None:
    stray(watched)
    others = tuple(f"a{number}" for number in range(19))
    for beside, seen in (((*others, "shop"), ["stray"]), ((*others, "b", "shop"), [])):
        planned = replace_target(watched, exclusive=()).plan(config_map("web"), beside=beside)
        assert [each.identity.name for each in planned.exclusive.beside] == seen
        assert any("in the first 20 of 21 namespaces" in note for note in planned.plan.notes) is (not seen)


def replace_target(watched: Watched, **changes: Any) -> Watched:
    """Change the target's settings, on the same cluster."""
    watched.shop.target = replace(watched.shop.target, **changes)
    planner = watched.shop.planner
    watched.shop.planner = type(planner)(watched.shop.target, planner.applyset, planner.api, planner.discovery)
    return watched


def test_namespaces_that_are_listed_beside_exclusive_ones() -> None:
    target = replace(EXCLUSIVE, namespaces=("shop", "jobs", "api"))
    assert exclusive_look.beside_exclusive(target) == ("api", "jobs")
    assert exclusive_look.beside_exclusive(replace(target, namespaces=("*",))) == ()


def test_a_change_of_an_orphan_names_uid_version_and_finalizers(watched: Watched) -> None:
    live = stray(watched, finalizers=["acme.io/hold"])
    (change,) = watched.plan(config_map("web")).plan.prunes
    expected = (live["metadata"]["uid"], live["metadata"]["resourceVersion"], ("acme.io/hold",), True)
    assert isinstance(change, Change)
    assert (change.uid, change.resource_version, change.finalizers, change.unmarked) == expected


@pytest.mark.parametrize(
    ("user", "left"), [("system:serviceaccount:shop:it", "its own account"), ("ada", ""), ("", "as its own aren't known")]
)
def test_what_became_the_targets_own_account_right_before_its_deletion_stays(watched: Watched, user: str, left: str) -> None:
    who: Reply = (201, {"status": {"userInfo": {"username": user}}}, {})
    watched.shop.meet = lambda call, do: who if user and call.asked.path.endswith("/selfsubjectreviews") else do()
    change = Change(Action.PRUNE, Identity("", "ServiceAccount", "shop", "it"), "u", "1", unmarked=True)
    again = watched.shop.planner.exclusive.judged_again(change, {"metadata": {"uid": "u", "resourceVersion": "2"}}, (), Needs())
    assert (again.writes, left in again.reason) == (not left, True)
