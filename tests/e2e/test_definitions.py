"""Definitions and their objects on a real API server: they come in one push, and go in the order in which their operator needs them."""

from __future__ import annotations

import copy

import pytest

from handler.engine.apply import wait_deleted
from handler.model.plan import Action
from handler.model.result import Outcome
from tests.e2e.documents import config_map, definition, deployment, offer
from tests.e2e.one_target import DONE, Shop, told
from tests.patience import PATIENCE


def test_prune_stops_before_the_stage_after_a_finalizer_that_holds(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator must live to clear the finalizer of its custom resource."""
    monkeypatch.setattr(wait_deleted, "TIMEOUT", 1.0)
    operator, lingering = deployment(shop.name, "operator"), offer(shop.group, shop.name, "o", finalizers=["shop.example.com/operator"])
    kept = (definition(shop.group), config_map(shop.name, "keep"))
    shop.push(*kept, lingering, operator)
    shop.applied()
    older = shop.head
    shop.push(*kept)
    result = shop.run()
    assert (result.outcome, result.code, result.who) == (Outcome.PRUNING, "still-deleting", "nobody"), told(result)
    assert (shop.state().commit, shop.state().status.phase) == (older, "pruning")
    assert "shop.example.com/operator" in result.message
    assert result.next_try
    assert shop.live(operator)
    patch = ["--type=merge", "-p", '{"metadata":{"finalizers":null}}']
    shop.kubectl.run("patch", f"offers.{shop.group}", "o", "-n", shop.name, *patch)
    monkeypatch.setattr(wait_deleted, "TIMEOUT", PATIENCE)
    assert shop.run("tick").outcome in DONE
    shop.assert_converged()


def test_a_new_field_and_a_new_version_come_with_the_objects_that_use_them(shop: Shop) -> None:
    shop.push(definition(shop.group), offer(shop.group, shop.name, "o"))
    shop.applied()
    wider, painted = definition(shop.group), offer(shop.group, shop.name, "o")
    wider["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"] = {"type": "string"}
    painted["spec"]["color"] = "red"
    shop.push(wider, painted)
    assert shop.applied().counts == {"configured": 2}
    shop.assert_converged()
    newer = copy.deepcopy(wider)
    newer["spec"]["versions"].append({**wider["spec"]["versions"][0], "name": "v2", "storage": False})
    shop.push(newer, painted | {"apiVersion": f"{shop.group}/v2"})
    result = shop.applied()
    assert result.counts == {"configured": 2}
    assert result.plan
    assert [change.action for change in result.plan.writes] == [Action.UPDATE, Action.UPDATE]
    shop.assert_converged()
