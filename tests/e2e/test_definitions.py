"""Definitions and their objects on a real API server: they come in one push, and go in the order in which their operator needs them."""

from __future__ import annotations

import pytest

from handler.engine.apply import wait_deleted
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
