"""Whatever happens between any two requests, the laws hold; and when it stops, live is what git declares.

`ANNEAL_MODEL_EXAMPLES=5000` searches further, by chance; without it the same examples are tried each time.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.simulated_time import simulated
from tests.model.state_machine import Deployments

EXAMPLES = int(os.environ.get("ANNEAL_MODEL_EXAMPLES", "0"))
PROFILE = settings(
    max_examples=EXAMPLES or 100,
    stateful_step_count=30,
    deadline=None,
    derandomize=not EXAMPLES,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
@pytest.mark.timeout(0 if EXAMPLES else 900)
def test_the_laws_hold_whatever_happens() -> None:
    with simulated():
        run_state_machine_as_test(Deployments, settings=PROFILE)
