"""Whether an object is ours."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.names import IDENTITY, PART_OF, identity_of
from handler.plan.adopt import is_member
from tests.unit.plan.samples import SET, document, member


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
