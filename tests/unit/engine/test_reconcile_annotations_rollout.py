"""Rollouts and hooks over objects that annotations of other tools leave alone."""

from __future__ import annotations

import copy

import pytest

from handler.model.result import Outcome
from tests.unit.engine.in_memory_shop import Body, InMemoryShop, body, config_map

pytestmark = pytest.mark.slow

FLUX = "kustomize.toolkit.fluxcd.io"
LAST = {"object": "a.yaml", "action": "CreateOrUpdate"}


def web(image: str = "shop:1") -> Body:
    pods = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    return body("web", "Deployment", "apps/v1", spec={"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": pods})


def password(value: str, **annotations: str) -> Body:
    return body("password", "Secret", metadata={"annotations": annotations} if annotations else {}, data={"value": value})


def lives(shop: InMemoryShop, document: Body) -> Body:
    found = shop.live(document)
    assert found
    return copy.deepcopy(found)


@pytest.mark.parametrize("action", ["CreateOrUpdate", "Recreate", "Canary"])
def test_a_step_skips_an_object_with_a_live_reconcile_disabled_annotation(shop: InMemoryShop, action: str) -> None:
    shop.roll([web(), config_map("a")], LAST)
    shop.applied()
    shop.annotate(web(), **{f"{FLUX}/reconcile": "disabled"})
    before = lives(shop, web())
    more = {"steps": [{"weight": 50, "for": "0s"}]} if action == "Canary" else {}
    shop.roll([web("shop:2"), config_map("a", "2")], {"object": "web.yaml", "action": action, "success": [{"healthy": {}}], **more}, LAST)
    shop.applied()
    rollout = shop.state().rollout
    assert rollout
    assert {each.step: each.outcome for each in rollout.steps} == {"web.yaml": "done", "a.yaml": "done"}
    assert lives(shop, web()) == before
    assert lives(shop, config_map("a"))["data"] == {"key": "2"}


def test_a_step_that_would_delete_an_object_with_reconcile_disabled_is_refused(shop: InMemoryShop) -> None:
    shop.roll([config_map("old"), config_map("a")], LAST)
    shop.applied()
    shop.annotate(config_map("old"), **{f"{FLUX}/ssa": "Ignore"})
    before = [lives(shop, config_map(name)) for name in ("old", "a")]
    shop.roll([config_map("old"), config_map("a", "2")], LAST, {"object": "old.yaml", "action": "DeleteIfExist"})
    result = shop.run()
    assert result.code == "plan-refused"
    assert f"protected by {FLUX}/ssa: Ignore" in result.problems[0].message
    assert [lives(shop, config_map(name)) for name in ("old", "a")] == before


@pytest.mark.parametrize(
    ("value", "action"), [("Ignore", "CreateOrUpdate"), ("IfNotPresent", "CreateOrUpdate"), ("IfNotPresent", "Recreate")]
)
def test_a_step_against_an_annotation_in_git_is_refused_and_nothing_is_written(shop: InMemoryShop, value: str, action: str) -> None:
    before = shop.create(password("cmVhbA=="))
    shop.roll([password("", **{f"{FLUX}/ssa": value}), config_map("a")], {"object": "password.yaml", "action": action})
    result = shop.run()
    assert result.code == "plan-refused"
    assert result.problems[0].message == f"{FLUX}/ssa: {value}, set in git, keeps it from what step password.yaml in all would do"
    assert (lives(shop, before), shop.live(config_map("a"))) == (before, None)


def test_create_if_not_exist_and_ssa_if_not_present_agree(shop: InMemoryShop) -> None:
    marks = {f"{FLUX}/ssa": "IfNotPresent"}
    create = {"object": "password.yaml", "action": "CreateIfNotExist"}
    shop.roll([password("Zmlyc3Q=", **marks)], create)
    shop.applied()
    before = lives(shop, password(""))
    shop.roll([password("b3RoZXI=", **marks)], create)
    shop.run()
    assert lives(shop, password("")) == before


def test_a_hook_isnt_applied_over_an_object_with_reconcile_disabled() -> None:
    shop = InMemoryShop()
    hook = {"argocd.argoproj.io/hook": "PreSync"}
    shop.push(config_map("settings", annotations=hook), config_map("a"))
    shop.applied()
    shop.annotate(config_map("settings"), **{f"{FLUX}/reconcile": "disabled"})
    before = lives(shop, config_map("settings"))
    shop.push(config_map("settings", "2", annotations=hook), config_map("a", "2"))
    result = shop.run()
    assert result.outcome is not Outcome.APPLIED
    assert f"{FLUX}/reconcile: disabled" in str(result.problems)
    assert lives(shop, config_map("settings")) == before
    assert lives(shop, config_map("a"))["data"] == {"key": "1"}
