"""What one run keeps of the indexes that it has seen, and how much."""

from __future__ import annotations

import pytest

from handler.model.chart_url import ChartUrl
from handler.model.errors import ChartUnavailable
from handler.source.charts.chart_index_cache import ChartIndexes

STABLE, OTHER = ChartUrl.of("https://h/stable"), ChartUrl.of("https://h/other")


def test_the_first_answer_stays_and_one_that_doesnt_fit_is_asked_for_again() -> None:
    seen = ChartIndexes(most=3)
    assert seen.of(STABLE, lambda: b"ab") == seen.of(STABLE, pytest.fail) == b"ab"
    assert seen.of(OTHER, lambda: b"cd") == b"cd"
    assert (STABLE in seen, OTHER in seen) == (True, False)
    assert seen.of(OTHER, lambda: b"e") == seen.of(OTHER, pytest.fail) == b"e"


def test_an_index_that_cant_be_had_is_asked_for_again() -> None:
    seen = ChartIndexes()

    def fails() -> bytes:
        raise ChartUnavailable.of("chart web", "no answer")

    with pytest.raises(ChartUnavailable):
        seen.of(STABLE, fails)
    assert seen.of(STABLE, lambda: b"") == seen.of(STABLE, pytest.fail) == b""
