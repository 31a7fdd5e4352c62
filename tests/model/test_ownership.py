"""An object that git declares is never deleted on the way, one that left git is gone, one that was never ours is untouched."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.model.fleet_rules import Fleets
from tests.model.searching import BUDGET, TIMEOUT, profile
from tests.model.simulated_time import simulated


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT)
def test_what_is_declared_is_never_deleted_whatever_is_renamed_moved_or_retired() -> None:
    with simulated():
        run_state_machine_as_test(Fleets, settings=profile(60, 25))


MUTANTS: dict[str, tuple[str, Any, str]] = {
    "a retirement asks no other target": ("handler.app.retiring._claims", lambda *rest: {}, "is deleted, and git declares it|there|anew"),
    "former marks aren't ours": ("handler.plan.inventory.Membership.is_former", lambda self, *rest: False, "left git, and live|isn't"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", MUTANTS)
def test_a_handler_without_one_of_its_laws_of_owning_is_noticed(what: str) -> None:
    name, mutant, seen = MUTANTS[what]
    with simulated(), patch(name, mutant), pytest.raises(AssertionError, match=seen):
        run_state_machine_as_test(Fleets, settings=BUDGET)
