"""Ages and durations, as people read them."""

from __future__ import annotations

import pytest

from handler.app.times import ago, span, until
from handler.state.record_format import stamp

NOW = 1_800_000_000.0
LATER = stamp(NOW + 90)


@pytest.mark.parametrize(("seconds", "text"), [(-3, "0 s"), (0, "0 s"), (59.9, "60 s"), (61, "1 min"), (7200, "2 h"), (200_000, "2 d")])
def test_span_prints_the_largest_unit_of_a_duration(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_recorded_times_are_printed_as_ages() -> None:
    assert (ago(stamp(NOW - 120), NOW), ago("", NOW)) == ("2 min ago", "")
    assert (until(LATER, NOW), until(stamp(NOW - 1), NOW), until("", NOW)) == ("in 1 min", "at once", "at once")
