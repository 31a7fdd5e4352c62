"""Whose an object is."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.names import IDENTITY, PART_OF, identity_of
from handler.plan.adopt import foreign_owner, is_member
from tests.unit.plan.samples import SET, document, member

OWNER = {"kind": "Shop", "name": "main", "uid": "u"}


def ours(live: dict[str, Any]) -> bool:
    return is_member(live, identity_of(live), "shop", SET)


def test_label_and_identity_together_make_an_object_ours() -> None:
    assert ours(member(document()))


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {PART_OF: "applyset-another-v1"}},
        {"labels": None},
        {"annotations": None},
        {"annotations": {IDENTITY: "shop:/ConfigMap:shop/original"}},
        {"annotations": {IDENTITY: "bank:/ConfigMap:shop/web"}},
        {"annotations": {IDENTITY: "shop:apps/ConfigMap:shop/web"}},
        {"annotations": {IDENTITY: "shop:/ConfigMap:bank/web"}},
        {"annotations": {IDENTITY: "shop:/ConfigMap:shop/web2"}},
    ],
)
def test_a_copied_or_missing_mark_makes_it_not_ours(change: dict[str, Any]) -> None:
    live = member(document())
    live["metadata"] |= change
    assert not ours(live)


def owner(**metadata: Any) -> str:
    live = document(metadata={"namespace": "shop", **metadata})
    return foreign_owner(live, identity_of(live), SET)


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        ({}, ""),
        ({"labels": {PART_OF: SET}}, ""),
        ({"labels": {"app": "web"}, "annotations": {"note": "x"}}, ""),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}, "Flux Kustomization apps"),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "web"}}, "Flux HelmRelease web"),
        ({"labels": {"argocd.argoproj.io/instance": "web"}}, "Argo CD application web"),
        ({"labels": {"kapp.k14s.io/app": "1"}}, "kapp app 1"),
        ({"labels": {"kluctl.io/discriminator": "d"}}, "kluctl discriminator d"),
        ({"labels": {"kubernixos": "c"}}, "Kubernixos checksum c"),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "web:/ConfigMap:shop/web"}}, "Argo CD application web:/ConfigMap:shop/web"),
        ({"annotations": {"meta.helm.sh/release-name": "web"}}, "Helm release web"),
        ({"annotations": {"config.k8s.io/owning-inventory": "i"}}, "cli-utils inventory i"),
        ({"labels": {PART_OF: "applyset-x-v1"}}, "ApplySet applyset-x-v1"),
        ({"labels": {PART_OF: "applyset-x-v1"}, "annotations": {IDENTITY: "bank:/ConfigMap:shop/web"}}, "target bank"),
        ({"labels": {PART_OF: "applyset-x-v1"}, "annotations": {IDENTITY: "bank:/ConfigMap:shop/copy"}}, "ApplySet applyset-x-v1"),
        ({"labels": {PART_OF: "applyset-x-v1", "kapp.k14s.io/app": "1"}}, "ApplySet applyset-x-v1"),
        ({"ownerReferences": [OWNER]}, ""),
        ({"ownerReferences": [OWNER, OWNER | {"name": "second", "controller": True}]}, "Shop second"),
    ],
)
def test_another_owner_is_named(metadata: dict[str, Any], named: str) -> None:
    assert owner(**metadata) == named
