"""An object that git declares is never deleted on the way, one that left git is gone, one that was never ours is untouched.

`ANNEAL_MODEL_EXAMPLES=5000` searches further, by chance; without it the same examples are tried each time.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.fleet_rules import Fleets
from tests.model.simulated_time import simulated

EXAMPLES = int(os.environ.get("ANNEAL_MODEL_EXAMPLES", "0"))
PROFILE = settings(
    max_examples=EXAMPLES or 60,
    stateful_step_count=25,
    deadline=None,
    derandomize=not EXAMPLES,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
@pytest.mark.timeout(0 if EXAMPLES else 900)
def test_what_is_declared_is_never_deleted_whatever_is_renamed_moved_or_retired() -> None:
    with simulated():
        run_state_machine_as_test(Fleets, settings=PROFILE)
