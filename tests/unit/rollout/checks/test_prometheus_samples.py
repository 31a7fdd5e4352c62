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
def test_a_value_that_is_further_away_is_worse(comparison: str, better: float, worse: float) -> None:
    wanted = Threshold.of(comparison)
    assert wanted.short_of(better) < wanted.short_of(worse)
    assert worst([Sample({}, better), Sample({}, math.nan), Sample({}, worse)], wanted) == worse


def test_none_is_worse_of_what_only_mustnt_be_a_number() -> None:
    assert {Threshold.of("!= 1").short_of(value) for value in (1.0, 2.0, math.inf)} == {0.0}


def test_of_no_number_none_is_worst() -> None:
    assert worst([], Threshold.of("< 1")) is None
    assert worst([Sample({}, math.nan)], Threshold.of("< 1")) is None
