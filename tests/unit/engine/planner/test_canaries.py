"""What a plan knows of canaries: whose they are while a rollout is due, and what may not be one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.engine.planner import canaries
from handler.engine.planner.canaries import ACTION, Canaries
from handler.model.errors import PlanRefused
from handler.model.names import Identity
from handler.model.plan import Action, Change
from handler.model.rollout import Group, Rollout, Step
from handler.plan.admission import Desired
from handler.rollout import canary
from tests.unit.engine.state_samples import planned, record, state
from tests.unit.plan.samples import desired, document

API = Identity("apps", "Deployment", "shop", "api")
CANARY = Identity("apps", "Deployment", "shop", "api-canary")


def rollout(identity: Identity = API, action: str = ACTION) -> Rollout:
    """One step that does this to one object, after a step of another action."""
    first = Step("first", "first.yaml", Identity("", "ConfigMap", "shop", "web"), "CreateOrUpdate")
    return Rollout("shop", (Group("one", (first, Step("api", "api.yaml", identity, action, canary.DEFAULT))),), place="rollout.yaml:1")


def declared(*names: str, kind: str = "Deployment") -> dict[Identity, Desired]:
    return {item.identity: item for item in desired(*(document(kind, name, "apps/v1") for name in names))}


PRUNE = Change(Action.PRUNE, CANARY, "u", "7", "no longer declared")
LIVE = {"metadata": {"labels": {canary.LABEL: "api"}}}


def test_a_canary_of_a_rollout_that_is_due_is_its_steps_to_remove() -> None:
    kept = Canaries.of(rollout(), due=True, gradual=True).kept(PRUNE, LIVE)
    assert (kept.action, kept.reason) == (Action.SKIP, "canary of Deployment/shop/api; goes when its rollout ends")
    assert kept.of_step


@pytest.mark.parametrize(
    ("found", "due"), [(rollout(), False), (None, True), (rollout(action="CreateOrUpdate"), True), (rollout(CANARY), True)]
)
def test_a_canary_without_a_due_rollout_is_a_prune_candidate(found: Rollout | None, due: bool) -> None:
    left = Canaries.of(found, due=due, gradual=True).kept(PRUNE, LIVE)
    assert left == PRUNE


def test_a_deployment_that_git_declared_under_a_canarys_name_is_pruned_like_any_other() -> None:
    assert Canaries.of(rollout(), due=True, gradual=True).kept(PRUNE, {"metadata": {"labels": {"app": "api"}}}) == PRUNE


def test_only_the_canary_is_kept_from_prune() -> None:
    other = Change(Action.PRUNE, Identity("apps", "Deployment", "shop", "other-canary"), "u", "7", "no longer declared")
    assert Canaries.of(rollout(), due=True, gradual=True).kept(other, LIVE) == other


def test_a_canary_of_a_rollout_under_way_is_no_orphan() -> None:
    kept = Canaries.of(rollout(), due=True, gradual=True).kept(PRUNE, LIVE)
    other = Change(Action.SKIP, Identity("", "Secret", "shop", "old"), "o", "7", "protected")
    assert [orphan.uid for orphan in record(state(), planned(prunes=(kept, other))).orphans] == ["o"]


def test_a_document_with_a_canarys_name_is_refused_with_its_place() -> None:
    with pytest.raises(PlanRefused) as caught:
        canaries.refuse(rollout(), declared("api", "api-canary"))
    assert str(caught.value) == (
        "1.yaml:1: Deployment/shop/api-canary: has the name that the canary of Deployment/shop/api gets "
        "(step api of the Rollout at rollout.yaml:1); give it another name"
    )


def test_only_deployments_go_by_canary() -> None:
    sets = Identity("apps", "StatefulSet", "shop", "api")
    with pytest.raises(PlanRefused) as caught:
        canaries.refuse(rollout(sets), declared("api", kind="StatefulSet"))
    assert str(caught.value) == (
        "rollout.yaml:1: StatefulSet/shop/api: can't go by canary (step api); only a Deployment of apps can; write action: CreateOrUpdate"
    )


def test_a_refused_canary_ends_its_rollout() -> None:
    """Else the commit were recorded, and a drift run wrote what the canary has refused."""
    found = rollout()
    steps = tuple(replace(step, continue_on_error=True) for step in found.steps)
    with pytest.raises(PlanRefused) as caught:
        canaries.refuse(replace(found, groups=(Group("one", steps),)), declared("api"))
    assert [(problem.subject, problem.fix) for problem in caught.value.problems] == [
        ("Deployment/shop/api", "remove continueOnError from that step")
    ]


def test_one_deployment_has_one_canary() -> None:
    found = rollout()
    with pytest.raises(PlanRefused) as caught:
        canaries.refuse(replace(found, groups=(*found.groups, *found.groups)), declared("api"))
    assert str(caught.value) == "rollout.yaml:1: Deployment/shop/api: goes by canary twice (again in step api); keep one of the steps"


def test_a_valid_canary_step_is_not_refused() -> None:
    canaries.refuse(rollout(), declared("api", "other"))
    canaries.refuse(rollout(action="CreateOrUpdate"), declared("api", "api-canary"))
    canaries.refuse(None, declared("api-canary"))
