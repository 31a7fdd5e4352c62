"""When targets are due by their name and the clock alone."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.triggers.schedule import due_between

NOON = 1_772_366_400.0
NAMES = [f"target-{number}" for number in range(1000)]


def test_every_target_is_due_once_an_interval_and_they_are_spread_evenly() -> None:
    found = [due_between(NAMES, 300.0, NOON + 60.0 * number, NOON + 60.0 * (number + 1)) for number in range(5)]
    assert Counter(name for names in found for name in names) == dict.fromkeys(NAMES, 1)
    assert all(150 <= len(names) <= 250 for names in found)
    seconds = [len(due_between(NAMES, 60.0, NOON + number, NOON + number + 1)) for number in range(60)]
    assert max(seconds) < 40


def test_the_next_round_is_the_same() -> None:
    for number in range(5):
        start = NOON + 60.0 * number
        now, then = due_between(NAMES, 300.0, start, start + 60.0), due_between(NAMES, 300.0, start + 300.0, start + 360.0)
        assert {name: round(at + 300.0, 3) for name, at in now.items()} == {name: round(at, 3) for name, at in then.items()}


@pytest.mark.slow
@given(
    name=st.text(max_size=20),
    interval=st.floats(1.0, 1e6),
    start=st.floats(0, 4e9),
    spans=st.lists(st.floats(0, 1e4), min_size=1, max_size=6),
)
def test_windows_that_touch_lose_no_moment_and_share_none(name: str, interval: float, start: float, spans: list[float]) -> None:
    times = [start]
    for span in spans:
        times.append(times[-1] + span)
    counted = [bool(due_between((name,), interval, before, after)) for before, after in itertools.pairwise(times)]
    whole = bool(due_between((name,), interval, times[0], times[-1]))
    assert whole is any(counted)
    assert sum(counted) <= (times[-1] - times[0]) / interval + 2


@pytest.mark.parametrize("interval", [10.0, 59.0, 60.0])
def test_a_target_due_several_times_in_a_window_is_named_once(interval: float) -> None:
    found = due_between(NAMES, interval, NOON, NOON + 60.0)
    assert list(found) == NAMES
    assert all(NOON <= at < NOON + 60.0 for at in found.values())


def test_an_empty_window_has_no_due_target() -> None:
    assert due_between(NAMES, 300.0, NOON, NOON) == {}
