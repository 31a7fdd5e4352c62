"""How far a value is from what is asked, and what is worst; the rows and standstills themselves are in `test_prometheus`."""

from __future__ import annotations

import math

import pytest

from handler.model.rollout import Sample
from handler.rollout.checks.prometheus import Threshold, worst


@pytest.mark.parametrize(
    ("comparison", "better", "worse"),
    [
        ("< 1", 2.0, 3.0),
        ("<= 1", 2.0, math.inf),
        ("> 1", 0.5, -2.0),
        (">= 1", 0.0, -math.inf),
        ("== 1", 0.5, 2.0),
    ],
)
def test_a_sample_further_from_its_threshold_is_worse(comparison: str, better: float, worse: float) -> None:
    wanted = Threshold.of(comparison)
    assert wanted.short_of(better) < wanted.short_of(worse)
    assert worst([Sample({}, better), Sample({}, math.nan), Sample({}, worse)], wanted) == worse


def test_a_not_equal_threshold_ranks_no_sample_worse() -> None:
    assert {Threshold.of("!= 1").short_of(value) for value in (1.0, 2.0, math.inf)} == {0.0}


def test_samples_without_a_number_have_no_worst() -> None:
    assert worst([], Threshold.of("< 1")) is None
    assert worst([Sample({}, math.nan)], Threshold.of("< 1")) is None
