"""Live objects, as their pages arrive, are sorted by what has to be done about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from handler.config.settings import IgnoreRule
from handler.model.manifest import Manifest
from handler.model.names import IDENTITY, PART_OF, Identity
from handler.model.plan import FieldChange
from handler.model.render import UnstableFields
from handler.model.rollout import Mode
from handler.plan import compare
from handler.plan.compare import Comparison, fingerprint
from handler.plan.ignore import Ignoring
from handler.rollout.hook_annotations import ROLLOUT
from tests.unit.plan.samples import OURS, SET, desired, document, entry, fields_of, live, member

WEB = Identity("", "ConfigMap", "shop", "web")


def comparison(*bodies: dict[str, Any], rules: tuple[IgnoreRule, ...] = (), **parts: Any) -> Comparison:
    declared = {item.identity: item for item in desired(*bodies)}
    return Comparison(OURS, declared, Ignoring(rules), **parts)


def applied(found: Comparison, identity: Identity = WEB) -> dict[str, Any]:
    """What lives after Anneal applied a declared object."""
    return live(found.desired[identity].manifest.body())


def changed(body: dict[str, Any], **data: str) -> dict[str, Any]:
    return body | {"data": data}


def test_whatever_lives_of_what_git_declares_is_known_by_its_uid() -> None:
    names = ("same", "drifted", "theirs", "gone")
    found = comparison(*(document(name=name, data={"a": "1"}) for name in names[:3]))
    same, drifted, theirs = (applied(found, replace(WEB, name=name)) for name in names[:3])
    found.see([same, changed(drifted, a="2"), member(document(name="gone"))])
    found.probe([theirs])
    assert found.declared_uids == {"uid-same", "uid-drifted", "uid-theirs"}


def test_an_object_with_drift_is_kept_for_the_dry_run_and_of_one_without_uid_and_version() -> None:
    found = comparison(document(data={"a": "1"}))
    drifted = changed(applied(found), a="2")
    found.see([drifted])
    assert (found.same, found.undecided, found.members) == ({}, {WEB: drifted}, 1)
    found.see([applied(found)])
    assert (found.same, found.undecided) == ({WEB: ("uid-web", "7")}, {})


def test_an_object_with_a_value_made_anew_is_kept_as_it_lives() -> None:
    """Of a Job that ran, its template is compared with what was declared then."""
    lives = applied(comparison(document(data={"a": "1", "seed": "then"})))
    found = comparison(document(data={"a": "2", "seed": "now"}))
    found.ignoring = Ignoring((), unstable={WEB: UnstableFields(("/data/seed",), "randAlpha at templates/web.yaml:3")})
    assert found.effective(found.desired[WEB], lives).manifest.body()["data"] == {"a": "2", "seed": "then"}
    without = comparison(document(data={"a": "2", "seed": "now"}))
    assert without.effective(without.desired[WEB], lives).manifest.body()["data"] == {"a": "2", "seed": "now"}


def test_a_body_without_drift_is_kept_where_it_is_asked_for_until_its_next_state_comes() -> None:
    found = comparison(document(data={"a": "1"}), document(name="other"), whole=(WEB,))
    lives, other = applied(found), applied(found, replace(WEB, name="other"))
    found.see([lives, other])
    assert found.bodies == {WEB: lives}
    found.see([changed(lives, a="2")])
    assert (found.bodies, list(found.undecided)) == ({}, [WEB])


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("read", [False, True])
def test_each_object_is_compared_once(monkeypatch: pytest.MonkeyPatch, *, known: bool, read: bool) -> None:
    """Also in a plan that is made to be read; what the server has called the same isn't compared at all in any other."""
    declared = document(data={"a": "1"})
    (item,) = desired(declared)
    verdict = {("uid-web", "7"): fingerprint(item)} if known else {}
    found = comparison(declared, known_same=verdict, undeclared={} if read else None)
    lives = applied(found)
    lives["metadata"]["managedFields"].append(entry({"f:data": {"f:b": {}}}, "Terraform"))
    lives["data"] = {"a": "1", "b": "2"}
    calls = {name: Mock(wraps=getattr(compare, name)) for name in ("identity_of", "takeover", "is_same")}
    for name, call in calls.items():
        monkeypatch.setattr(compare, name, call)
    effective = Mock(wraps=found.ignoring.effective)
    monkeypatch.setattr(Ignoring, "effective", effective)
    found.see([lives])
    counts = [effective.call_count, *(calls[name].call_count for name in ("identity_of", "takeover", "is_same"))]
    looked = read or not known
    assert counts == [looked, 1, looked, not known]
    assert list(found.same) == [WEB]
    assert found.undeclared == ({WEB: (FieldChange("data.b", "", "2", "Terraform"),)} if read else None)


def test_an_object_that_the_dry_run_found_equal_has_no_drift_until_a_side_changes() -> None:
    declared = document(data={"a": "1"})
    (item,) = desired(declared)
    verdict = {("uid-web", "7"): fingerprint(item)}
    known, moved = comparison(declared, known_same=verdict), comparison(declared, known_same=verdict)
    edited = comparison(document(data={"a": "2"}), known_same=verdict)
    known.see([changed(applied(known), a="one")])
    moved.see([live(changed(item.manifest.body(), a="one"), resourceVersion="8")])
    edited.see([changed(applied(edited), a="one")])
    assert [list(each.same) for each in (known, moved, edited)] == [[WEB], [], []]


@pytest.mark.parametrize("known", [False, True])
def test_what_is_being_deleted_is_never_the_same(*, known: bool) -> None:
    """Although it lives just as declared: it has to be created again once it is gone."""
    declared = document(data={"a": "1"})
    (item,) = desired(declared)
    found = comparison(declared, known_same={("uid-web", "7"): fingerprint(item)} if known else {})
    going = live(item.manifest.body(), deletionTimestamp="2026-03-01T12:00:00Z")
    found.see([going])
    assert (found.same, found.undecided) == ({}, {WEB: going})


def test_a_hook_is_neither_compared_nor_missed_nor_pruned_while_it_is_declared() -> None:
    (item,) = desired(document(data={"a": "1"}))
    found = Comparison(OURS, {WEB: replace(item, mode=Mode.HOOK)}, Ignoring(()))
    assert found.absent() == ()
    found.see([changed(member(document()), a="2")])
    assert (found.same, found.undecided, found.unowned, found.candidates) == ({}, {}, {}, {})
    assert found.members == 1, "no rollout made it as this hook"
    mark = entry(fields_of({"metadata": {"annotations": {ROLLOUT: "PreSync x"}}}))
    found.see([member(document(), annotations={ROLLOUT: "PreSync x"}, managedFields=[mark])])
    assert found.members == 0
    assert found.hooks.keys() == {WEB}
    assert found.hooks[WEB].keys() == {"apiVersion", "kind", "metadata"}
    assert found.absent() == ()


@pytest.mark.parametrize("deleted", [False, True])
def test_an_if_not_present_object_has_no_drift_unless_it_is_terminating(*, deleted: bool) -> None:
    (item,) = desired(document(data={"a": "1"}))
    found = Comparison(OURS, {WEB: replace(item, mode=Mode.KEEP)}, Ignoring(()))
    drifted = changed(applied(found), a="2")
    drifted["metadata"] |= {"deletionTimestamp": "2026-03-01T12:00:00Z"} if deleted else {}
    found.see([drifted])
    assert (list(found.same), list(found.undecided)) == (([], [WEB]) if deleted else ([WEB], []))


def test_an_undeclared_member_is_a_prune_candidate_without_its_content() -> None:
    found = comparison()
    gone = member(document("Secret", data={"key": "Q0FOQVJZ"}))
    found.see([gone])
    (candidate,) = found.candidates.values()
    assert candidate.keys() == {"apiVersion", "kind", "metadata"}
    assert candidate["metadata"] == {key: value for key, value in gone["metadata"].items() if key != "managedFields"}
    assert found.members == 1


def test_an_object_with_a_copied_inventory_label_is_no_prune_candidate() -> None:
    found = comparison()
    found.see([member(document(), annotations={IDENTITY: "shop:/ConfigMap:shop/original"})])
    assert (found.candidates, found.members) == ({}, 0)
    found.see([member(document()), member(document(), annotations={IDENTITY: ""})])
    assert not found.candidates, "its annotation went"


def test_a_declared_object_with_a_copied_inventory_label_is_not_ours_yet() -> None:
    found = comparison(document())
    copy = document(metadata={"namespace": "shop", "labels": {PART_OF: SET}})
    found.see([copy])
    assert (found.unowned, found.members, found.absent()) == ({WEB: copy}, 0, ())


OWNED = {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "above"}]}


@pytest.mark.parametrize(
    ("more", "mode", "owners"),
    [
        ({}, Mode.APPLY, ()),
        ({}, Mode.KEEP, ("above",)),
        ({"annotations": {"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}}, Mode.APPLY, ("above",)),
    ],
    ids=["applied", "only created", "left alone"],
)
def test_an_owner_that_git_drops_is_dropped_where_the_object_is_written(more: dict[str, Any], mode: Mode, owners: tuple[str, ...]) -> None:
    found = comparison(document(data={"a": "1"}), whole=(WEB,))
    found.desired = {WEB: replace(found.desired[WEB], mode=mode)}
    by_us: dict[str, Any] = {"f:metadata": {"f:ownerReferences": {'k:{"uid":"above"}': {}}}}
    lives = live(found.desired[WEB].manifest.body(), by_us, **OWNED)
    lives["metadata"]["annotations"] |= more.get("annotations", {})
    found.see([lives])
    assert found.dependants[WEB].owners == owners


def test_what_git_declares_after_all_says_which_owners_are_left() -> None:
    """As in the plan of a pull request: members are compared with what git declares before the merge."""
    found = comparison(document(data={"a": "1"}, metadata=OWNED), whole=(WEB,))
    by_us: dict[str, Any] = {"f:metadata": {"f:ownerReferences": {'k:{"uid":"above"}': {}}}}
    found.see([live(found.desired[WEB].manifest.body(), by_us)])
    assert found.dependants[WEB].owners == ("above",)
    found.declare(comparison(document(data={"a": "1"})).desired)
    assert (found.dependants[WEB].owners, found.dependants[WEB].dropped) == ((), ("above",))


def test_owners_of_members_and_declared_objects_are_noted_as_they_are_last() -> None:
    found = comparison(document(data={"a": "1"}))
    mine, gone, other = applied(found), member(document("Secret")), live(document("Secret", name="other"))
    for each in (mine, gone, other):
        each["metadata"]["ownerReferences"] = [{"kind": "Offer", "name": "a", "uid": f"owner-of-{each['kind']}"}]
    found.see([mine, gone, other])
    assert found.owners == {WEB: ("owner-of-ConfigMap",), Identity("", "Secret", "shop", "web"): ("owner-of-Secret",)}
    found.see([applied(found)])
    assert found.owners.keys() == {Identity("", "Secret", "shop", "web")}


def test_an_object_that_comes_twice_counts_by_its_later_state() -> None:
    found = comparison(document(data={"a": "1"}))
    right = applied(found)
    stolen = changed(right, a="2") | {"metadata": right["metadata"] | {"annotations": {}}}
    for order, place in (
        ([changed(right, a="2"), right], "same"),
        ([right, changed(right, a="2")], "undecided"),
        ([right, stolen], "unowned"),
        ([stolen, right], "same"),
    ):
        found.see(order)
        assert [name for name in ("same", "undecided", "unowned") if getattr(found, name)] == [place]


def test_a_prune_candidate_whose_identity_annotation_went_is_none() -> None:
    found = comparison()
    found.see([member(document()), member(document(), annotations={IDENTITY: ""})])
    assert not found.candidates


def test_an_object_in_no_list_is_absent_until_it_is_found_without_the_inventory_label() -> None:
    found = comparison(document(), document("Secret"))
    assert [item.identity.kind for item in found.absent()] == ["ConfigMap", "Secret"]
    found.probe([document(metadata={"namespace": "shop"})])
    assert [item.identity.kind for item in found.absent()] == ["Secret"]


def test_ignored_fields_neither_count_as_a_difference_nor_are_applied() -> None:
    found = comparison(document(data={"a": "1", "b": "2"}), rules=(IgnoreRule(paths=("/data/b",)),))
    item = found.desired[WEB]
    drifted = changed(applied(found), a="1", b="theirs")
    found.see([drifted])
    assert list(found.same) == [WEB]
    effective = found.effective(item, drifted).manifest
    assert (effective.body()["data"], effective.place) == ({"a": "1", "b": "theirs"}, item.manifest.place)


def test_a_kind_that_git_writes_in_two_versions_is_judged_in_each_objects_own() -> None:
    """Both LISTs show both objects."""
    (new,) = desired(document("HorizontalPodAutoscaler", "new", "autoscaling/v2", spec={"maxReplicas": 2}))
    first, second = replace(new.resource, version="v1"), new.resource
    (marked,) = desired(document("HorizontalPodAutoscaler", "old", "autoscaling/v2", spec={"maxReplicas": 2}))
    old = replace(new, manifest=Manifest.of({**marked.manifest.body(), "apiVersion": "autoscaling/v1"}), resource=first)
    found = Comparison(OURS, {item.identity: item for item in (old, new)}, Ignoring(()))
    gone = member(document("HorizontalPodAutoscaler", "gone", "autoscaling/v1"))
    lives = [*(live(item.manifest.body()) for item in (old, new)), gone]
    found.see([{**each, "apiVersion": version} for version in ("autoscaling/v1", "autoscaling/v2") for each in lives], [first, second])
    assert (sorted(found.same), found.undecided, len(found.candidates)) == (sorted([old.identity, new.identity]), {}, 1)
    assert found.members == 3
    alone = Comparison(OURS, {old.identity: old}, Ignoring(()))
    alone.see([{**live(old.manifest.body()), "apiVersion": "autoscaling/v2"}], [second])
    assert list(alone.undecided) == [old.identity], "its own version is served no more, or not yet"


def annotated(found: Comparison, key: str, value: str) -> dict[str, Any]:
    """What lives, with an annotation that was set live."""
    body = applied(found)
    return body | {"metadata": body["metadata"] | {"annotations": body["metadata"]["annotations"] | {key: value}}}


def test_an_object_with_reconcile_disabled_is_a_member_without_drift() -> None:
    found = comparison(document(data={"a": "1"}))
    found.see([changed(annotated(found, "kustomize.toolkit.fluxcd.io/reconcile", "disabled"), a="2")])
    assert (list(found.left), found.same, found.undecided, found.members) == ([WEB], {}, {}, 1)
    found.see([applied(found)])
    assert (found.left, list(found.same)) == ({}, [WEB]), "a later state has it no more"


def test_a_live_value_that_its_tool_does_not_know_is_noted_and_changes_nothing() -> None:
    found = comparison(document(data={"a": "1"}))
    found.see([annotated(found, "kustomize.toolkit.fluxcd.io/ssa", "Nevr")])
    assert list(found.notes) == [WEB]
    assert "Nevr" in found.notes[WEB]
    assert not found.left


def test_what_stays_undeclared_is_named_with_its_manager_and_what_another_version_alone_knows_with_that() -> None:
    found = comparison(document(data={"a": "1"}), undeclared={})
    body = applied(found) | {"data": {"a": "1", "b": "2"}}
    fields: dict[str, Any] = {"f:data": {"f:b": {}, "f:gone": {}}}
    body["metadata"]["managedFields"] += [entry(fields, "my-operator", "Update"), entry({"f:old": {}}, "older", "Update", api="v1beta1")]
    found.see([body])
    assert found.undeclared
    assert [(each.path, each.live, each.manager) for each in found.undeclared[WEB]] == [
        ("data.b", "2", "my-operator"),
        ("old (v1beta1)", "…", "older"),
    ]
