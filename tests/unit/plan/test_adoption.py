"""What `anneal adopt` lists of a plan: whose each object is, what refuses it, and what is no candidate."""

from __future__ import annotations

from typing import Any

from handler.model.errors import Problem
from handler.model.names import IDENTITY, PART_OF, applyset_id, identity_of
from handler.model.plan import Action, Change
from handler.plan.adoption import Adoptions
from handler.plan.inventory import Membership, TargetMarks
from handler.plan.missing_settings import lacking
from tests.unit.plan.samples import SET, desired, document

FLUX = {"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}
HELM = {"annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"}}
OTHER = {"labels": {PART_OF: applyset_id("anneal-bank", "bank")}}


def seen(adoptions: Adoptions, name: str, metadata: dict[str, Any], *outcome: Change | Problem, **parts: Any) -> None:
    body = document(name=name, metadata={"namespace": "shop", **metadata})
    (item,) = desired(document(name=name))
    found = outcome or (Change(Action.UPDATE, identity_of(body), adopted=True),)
    adoptions.see(item, item.manifest.body() if parts.get("ours") else body, Membership(TargetMarks("shop", SET)), found)


def listed(adoptions: Adoptions) -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        (owner.name if owner else "", [(each.identity.name, each.refusal) for each in found])
        for owner, found in adoptions.by_owner().items()
    ]


def test_candidates_are_grouped_by_owner_and_those_of_no_tool_come_last() -> None:
    adoptions = Adoptions()
    for name, metadata in (("d", {}), ("c", HELM), ("b", FLUX), ("a", FLUX)):
        seen(adoptions, name, metadata)
    assert listed(adoptions) == [("Flux Kustomization apps", [("a", ""), ("b", "")]), ("Helm release web", [("c", "")]), ("", [("d", "")])]
    assert adoptions.owners() == ("flux", "helm")


def test_an_object_that_carries_the_targets_own_name_under_another_label_is_no_other_targets() -> None:
    adoptions, labels = Adoptions(), OTHER["labels"]
    seen(adoptions, "a", {"labels": labels, "annotations": {IDENTITY: "shop:/ConfigMap:shop/a"}})
    seen(adoptions, "b", {"labels": labels, "annotations": {IDENTITY: "bank:/ConfigMap:shop/b"}})
    (by_set, by_bank) = (owner for owner in adoptions.by_owner() if owner)
    assert [by_set.name, by_bank.name] == [f"ApplySet {labels[PART_OF]}", "target bank"]
    assert by_set.stop[0].startswith("first see what has labelled it, for that would do so again")
    assert by_bank.stop[0].startswith("first let that target go of it: take it out of the git of bank")


def test_what_is_refused_says_why_and_names_no_owner_to_take_over_from() -> None:
    adoptions = Adoptions()
    seen(adoptions, "a", OTHER, lacking(Problem("ConfigMap/shop/a", "belongs to target bank"), "shop", {"adopt": ("x",)}))
    seen(adoptions, "b", FLUX)
    assert [found for _, found in listed(adoptions)] == [[("a", "belongs to target bank")], [("b", "")]]
    assert adoptions.owners() == ("flux",)


def test_the_servers_words_arent_kept_for_they_may_quote_a_secret() -> None:
    adoptions = Adoptions()
    seen(adoptions, "a", HELM, Problem("ConfigMap/shop/a", 'Invalid value: "hunter2"'))
    seen(adoptions, "b", FLUX)
    assert [found for _, found in listed(adoptions)] == [[("b", "")], [("a", "refused, as is said below")]]
    assert adoptions.owners() == ("flux",)


def test_members_hand_overs_and_what_is_left_alone_are_no_candidates() -> None:
    adoptions = Adoptions()
    seen(adoptions, "a", {}, ours=True)
    one, other = (identity_of(document(name=name, metadata={"namespace": "shop"})) for name in "bc")
    seen(adoptions, "b", OTHER, Change(Action.UPDATE, one, sibling="bank", adopted=True))
    seen(adoptions, "c", FLUX, Change(Action.SKIP, other, reason="lives already and isn't ours"))
    assert adoptions.found == {}
