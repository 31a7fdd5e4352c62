"""Errors of several answers: a lost Lease before all others, what passes by itself as it is, refusals together."""

from __future__ import annotations

import pytest

from handler.engine.planner.join_errors import raise_together
from handler.model.errors import AccessDenied, AnnealError, ApiRefused, ClusterUnavailable, LeaseLost, PlanRefused, Problem
from handler.model.manifest import Manifest
from handler.model.names import identity_of
from handler.model.plan import Action, Change
from tests.unit.plan.samples import document

WEB = document(metadata={"namespace": "shop"})
CHANGE = Change(Action.UPDATE, identity_of(WEB), manifest=Manifest.of(WEB, "shop/web.yaml:1"))
GONE = ClusterUnavailable.of("GET /api", "doesn't answer")
REFUSED = ApiRefused(Problem("ConfigMap/shop/web", "spec: Invalid value"), status=422)
DENIED = AccessDenied.of("ConfigMap/shop/web", "may not be patched")


@pytest.mark.parametrize(
    ("answers", "raised"),
    [
        ([GONE, REFUSED, LeaseLost.of("Lease/anneal-shop", "is held by another")], LeaseLost),
        ([REFUSED, CHANGE, GONE], ClusterUnavailable),
        ([REFUSED, CHANGE, DENIED], AccessDenied),
        ([CHANGE, REFUSED], PlanRefused),
    ],
)
def test_the_error_that_decides_is_raised(answers: list[Change | AnnealError], raised: type[AnnealError]) -> None:
    with pytest.raises(raised):
        raise_together(answers, [CHANGE])


def test_refusals_come_together_each_with_its_place() -> None:
    with pytest.raises(AccessDenied) as found:
        raise_together([REFUSED, DENIED], [CHANGE])
    assert [(each.message, each.place) for each in found.value.problems] == [
        ("may not be patched", "shop/web.yaml:1"),
        ("spec: Invalid value", "shop/web.yaml:1"),
    ]
    raise_together([CHANGE], [CHANGE])
