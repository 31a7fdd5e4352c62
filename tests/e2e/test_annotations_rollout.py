"""Rollouts and hooks over objects that annotations of other tools leave alone."""

from __future__ import annotations

import pytest

from handler.model.result import Outcome
from handler.model.rollout import ARGO_HOOK
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, deployment, secret
from tests.e2e.live_annotations import FLUX, annotate, by_hand, seen
from tests.e2e.one_target import Shop, told
from tests.e2e.rollouts import group, opened, outcomes, push, step

STEPS = [{"weight": 50, "for": "0s"}]


@pytest.mark.parametrize("action", ["CreateOrUpdate", "Recreate", "Canary"])
def test_a_step_skips_an_object_with_a_live_reconcile_disabled_annotation(open_shop: Open, action: str) -> None:
    shop = opened(open_shop)
    more = {"steps": STEPS} if action == "Canary" else {}
    push(
        shop,
        [deployment(shop.name, "web", replicas=2), config_map(shop.name, "a")],
        group("all", step("CreateOrUpdate", config_map(shop.name, "a"))),
    )
    shop.applied()
    annotate(shop, "deployment", "web", f"{FLUX}/reconcile=disabled")
    before = shop.versions([deployment(shop.name, "web")])
    web, last = deployment(shop.name, "web", "shop:2", replicas=2), config_map(shop.name, "a", {"key": "2"})
    checked = step(action, web, success=[{"healthy": {}}], **more)
    push(shop, [web, last], group("all", checked, step("CreateOrUpdate", last)))
    shop.applied()
    assert outcomes(shop) == {"web": "done", "a": "done"}
    assert shop.versions([web]) == before
    assert seen(shop, last)[2] == {"key": "2"}


def test_a_step_that_would_delete_an_object_with_reconcile_disabled_is_refused(open_shop: Open) -> None:
    shop = opened(open_shop)
    old, last = config_map(shop.name, "old"), config_map(shop.name, "a")
    push(shop, [old, last], group("all", step("CreateOrUpdate", last)))
    shop.applied()
    annotate(shop, "cm", "old", f"{FLUX}/ssa=Ignore")
    before = shop.versions()
    push(shop, [old, config_map(shop.name, "a", {"key": "2"})], group("all", step("CreateOrUpdate", last), step("DeleteIfExist", old)))
    result = shop.run()
    assert result.code == "plan-refused", told(result)
    assert f"protected by {FLUX}/ssa: Ignore" in result.problems[0].message
    assert shop.versions() == before


@pytest.mark.parametrize(
    ("value", "action"), [("Ignore", "CreateOrUpdate"), ("IfNotPresent", "CreateOrUpdate"), ("IfNotPresent", "Recreate")]
)
def test_a_step_against_an_annotation_in_git_is_refused_and_nothing_is_written(open_shop: Open, value: str, action: str) -> None:
    shop = opened(open_shop)
    password = secret(shop.name, "password", "placeholder", annotations={f"{FLUX}/ssa": value})
    by_hand(shop, secret(shop.name, "password", "the real one"))
    before = seen(shop, password)
    push(shop, [password, config_map(shop.name, "a")], group("all", step(action, password)))
    result = shop.run()
    assert result.code == "plan-refused", told(result)
    assert result.problems[0].message == f"{FLUX}/ssa: {value}, set in git, keeps it from what step password in all would do"
    assert seen(shop, password) == before
    assert shop.live(config_map(shop.name, "a")) is None


def test_create_if_not_exist_and_ssa_if_not_present_agree(open_shop: Open) -> None:
    shop = opened(open_shop)
    marks = {f"{FLUX}/ssa": "IfNotPresent"}
    password = secret(shop.name, "password", "placeholder", annotations=marks)
    push(shop, [password], group("all", step("CreateIfNotExist", password)))
    shop.applied()
    before = seen(shop, password)
    push(shop, [secret(shop.name, "password", "other", annotations=marks)], group("all", step("CreateIfNotExist", password)))
    shop.run()
    assert seen(shop, password) == before


def test_a_hook_isnt_applied_over_an_object_with_reconcile_disabled(shop: Shop) -> None:
    hook = {ARGO_HOOK: "PreSync"}
    shop.push(config_map(shop.name, "settings", annotations=hook), config_map(shop.name, "a"))
    shop.applied()
    settings = config_map(shop.name, "settings")
    annotate(shop, "cm", "settings", f"{FLUX}/reconcile=disabled")
    before = seen(shop, settings)
    shop.push(config_map(shop.name, "settings", {"key": "2"}, annotations=hook), config_map(shop.name, "a", {"key": "2"}))
    result = shop.run()
    assert result.outcome is not Outcome.APPLIED, told(result)
    assert f"{FLUX}/reconcile: disabled" in str(result.problems)
    assert seen(shop, settings) == before
    assert seen(shop, config_map(shop.name, "a"))[2] == {"key": "1"}
