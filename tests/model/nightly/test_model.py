"""Whatever happens between any two requests, the laws hold; and when it stops, live is what git declares."""

from __future__ import annotations

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.model.searching import TIMEOUT, profile
from tests.model.simulated_time import simulated
from tests.model.state_machine import Deployments


@pytest.mark.timeout(TIMEOUT)
def test_the_laws_hold_whatever_happens() -> None:
    with simulated():
        run_state_machine_as_test(Deployments, settings=profile(100, 30))
