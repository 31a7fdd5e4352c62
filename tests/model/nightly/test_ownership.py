"""An object that git declares is never deleted on the way, one that left git is gone, one that was never ours is untouched."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis.stateful import run_state_machine_as_test

from handler.model.names import PART_OF
from tests.model.fleet_rules import Fleets
from tests.model.searching import BUDGET, TIMEOUT, profile
from tests.model.simulated_time import simulated


@pytest.mark.timeout(TIMEOUT)
def test_what_is_declared_is_never_deleted_whatever_is_renamed_moved_or_retired() -> None:
    with simulated():
        run_state_machine_as_test(Fleets, settings=profile(60, 25))


LIVES = "left git, and live"
MUTANTS: dict[str, tuple[str, Any, str]] = {
    "a retirement asks no other target": ("handler.app.retiring.DeclaredClaims.of", lambda *rest: {}, "is deleted, and git declares it"),
    "former marks aren't ours": ("handler.plan.inventory.Membership.is_former", lambda self, *rest: False, f"{LIVES}|isn't"),
    "marks aren't taken along": ("handler.engine.relocation.relabel", lambda *rest: (), f"{LIVES}|isn't"),
    "a giver asks no sibling": ("handler.engine.planner.siblings.kept_for", lambda *rest: ("", ""), f"{LIVES}|is deleted"),
    "a copied label makes a member": (
        "handler.plan.inventory.TargetMarks.are_on",
        lambda self, live, identity: (live["metadata"].get("labels") or {}).get(PART_OF) == self.applyset,
        "was never ours, and is written",
    ),
}


@pytest.mark.parametrize("what", MUTANTS)
def test_a_handler_without_one_of_its_laws_of_owning_is_noticed(what: str) -> None:
    name, mutant, seen = MUTANTS[what]
    with simulated(), patch(name, mutant), pytest.raises(AssertionError, match=seen):
        run_state_machine_as_test(Fleets, settings=BUDGET)
