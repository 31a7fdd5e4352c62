"""Drift: an object edited by hand, and the proof that a target is at rest."""

from __future__ import annotations

import json
from typing import Any

from handler.model.result import Outcome
from tests.e2e.one_target import Shop, told


def edit(shop: Shop, kind: str, name: str, patch: dict[str, Any], *options: str) -> None:
    """Change a live object by hand, as `kubectl edit` does."""
    place = ["-n", shop.name] if kind in ("cm", "deployment", "service") else []
    kind_of_patch = () if any(option.startswith("--type") for option in options) else ("--type=merge",)
    manager = () if any(option.startswith("--field-manager") for option in options) else ("--field-manager=kubectl-edit",)
    shop.kubectl.run("patch", kind, name, *place, *kind_of_patch, *manager, "-p", json.dumps(patch), *options)


def assert_rests(shop: Shop) -> None:
    """Neither a tick nor a drift run nor a fresh handler writes anything."""
    before = shop.versions()
    record = shop.recorded()
    for trigger in ("tick", "drift", "drift"):
        result = shop.run(trigger)
        assert result.outcome is Outcome.UNCHANGED, told(result)
    shop.configure()
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert shop.versions() == before
    assert shop.recorded() == record
