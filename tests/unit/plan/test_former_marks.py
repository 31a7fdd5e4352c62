"""Which members a takeover relabels, and how its plan says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.model.names import IDENTITY, PART_OF, Identity, applyset_id, identity_of
from handler.model.plan import Action, Change
from handler.model.rollout import Mode
from handler.plan.compare import Comparison
from handler.plan.former_marks import kept, outside, relabelling
from handler.plan.handover import relabelled
from handler.plan.ignore import Ignoring
from handler.plan.inventory import Membership, TargetMarks
from tests.unit.plan.samples import OURS, SET, desired, document, live, member

OLD = TargetMarks.of("store", "anneal-system")
TAKING = Membership(OURS.marks, OLD)
MOVED = Membership(OURS.marks, TargetMarks.of("shop", "gitops"))


def former(name: str = "web", marks: TargetMarks = OLD) -> dict[str, Any]:
    found = live(member(document(name=name)))
    identity = identity_of(found)
    found["metadata"]["labels"][PART_OF], found["metadata"]["annotations"][IDENTITY] = marks.applyset, identity.mark(marks.target)
    return found


def compared(*objects: dict[str, Any], declared: dict[Identity, Any] | None = None) -> Comparison:
    comparison = Comparison(TAKING, declared or {}, Ignoring(()))
    comparison.see(objects)
    return comparison


def test_what_stays_is_relabelled_and_nothing_else_of_it_is_written() -> None:
    body = former()
    (change,) = kept(TAKING, [identity_of(body)], compared(body))
    assert (change.action, change.marks_only, change.uid) == (Action.UPDATE, True, body["metadata"]["uid"])
    assert [(each.path, each.live, each.declared) for each in change.fields] == [
        (f"metadata.labels.{PART_OF}", OLD.applyset, SET),
        (f"metadata.annotations.{IDENTITY}", "store:/ConfigMap:shop/web", "shop:/ConfigMap:shop/web"),
    ]
    assert change.manifest
    assert change.manifest.body()["metadata"]["labels"] == {PART_OF: SET}
    assert change.manifest.body().keys() == {"apiVersion", "kind", "metadata"}
    assert change.reason == "taken over from target store; its content stays as it is"


def test_what_goes_and_what_has_our_marks_is_not_relabelled() -> None:
    going, ours = former("going"), live(member(document(name="ours")))
    comparison = compared(going, ours)
    assert comparison.candidates.keys() == {identity_of(going), identity_of(ours)}
    assert kept(TAKING, [identity_of(ours)], comparison) == ()


@pytest.mark.parametrize(
    ("identity", "listed"),
    [
        (Identity("", "ConfigMap", "bank", "a"), "namespace bank in `namespaces`"),
        (Identity("rbac.authorization.k8s.io", "ClusterRole", "", "a"), "ClusterRole.rbac.authorization.k8s.io in `clusterScoped`"),
    ],
)
def test_a_member_outside_of_the_whitelist_is_named_with_what_to_list(identity: Identity, listed: str) -> None:
    said = outside(identity)
    assert (said.subject, said.fix) == (str(identity), f"until the takeover has ended, list {listed}")


def test_without_a_takeover_nothing_is_relabelled() -> None:
    body = live(member(document()))
    comparison = Comparison(OURS, {}, Ignoring(()))
    comparison.see([body])
    assert kept(OURS, [identity_of(body)], comparison) == ()


def test_a_hook_is_relabelled_though_it_is_never_compared() -> None:
    (item,), body = desired(document()), former()
    comparison = compared(body, declared={item.identity: replace(item, mode=Mode.HOOK)})
    assert [change.identity for change in kept(TAKING, [], comparison)] == [item.identity]


@pytest.mark.parametrize("mode", [Mode.APPLY, Mode.KEEP, Mode.LEAVE])
def test_a_declared_object_with_former_marks_is_asked_about(mode: Mode) -> None:
    (item,), body = desired(document()), former()
    comparison = compared(body, declared={item.identity: replace(item, mode=mode)})
    assert comparison.undecided.keys() == {item.identity}


def test_a_cluster_scoped_member_and_a_moved_namespace() -> None:
    body = live(member(document("Namespace", "shop")))
    body["metadata"].pop("namespace", None)
    identity = identity_of(body)
    body["metadata"]["labels"][PART_OF] = applyset_id("anneal-shop", "gitops")
    body["metadata"]["annotations"][IDENTITY] = identity.mark("shop")
    change = relabelling(MOVED, identity, body)
    assert [each.path for each in change.fields] == [f"metadata.labels.{PART_OF}"]
    assert change.reason.startswith("taken over from the former state namespace")
    assert change.manifest
    assert "namespace" not in change.manifest.body()["metadata"]


def test_a_change_keeps_its_own_reason_beside() -> None:
    change = Change(Action.RECREATE, Identity("", "ConfigMap", "shop", "web"), reason="an immutable field changed")
    assert relabelled(TAKING, change).reason == "taken over from target store; an immutable field changed"
    assert relabelled(TAKING, change).action is Action.RECREATE


def test_a_copied_former_mark_is_no_membership() -> None:
    body = former()
    body["metadata"]["annotations"][IDENTITY] = "store:/ConfigMap:shop/original"
    assert compared(body).candidates == {}
    assert (TAKING.own_label(body), OURS.own_label(body)) == (OLD.applyset, SET)


def test_one_list_finds_both() -> None:
    assert TAKING.selector == f"{PART_OF} in ({SET},{OLD.applyset})"
    assert OURS.selector == f"{PART_OF}={SET}"
