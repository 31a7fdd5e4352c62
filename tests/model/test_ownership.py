"""An object that git declares is never deleted on the way, one that left git is gone, one that was never ours is untouched."""

from __future__ import annotations

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.model.fleet_rules import Fleets
from tests.model.searching import TIMEOUT, profile
from tests.model.simulated_time import simulated


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT)
def test_what_is_declared_is_never_deleted_whatever_is_renamed_moved_or_retired() -> None:
    with simulated():
        run_state_machine_as_test(Fleets, settings=profile(60, 25))
