"""Ages, durations and moments, as people read and write them."""

from __future__ import annotations

import pytest

from handler.app.times import ago, moment, span, until
from handler.state.record_format import seconds_of, stamp

NOW = 1_800_000_000.0
LATER = stamp(NOW + 90)


@pytest.mark.parametrize(("seconds", "text"), [(-3, "0 s"), (0, "0 s"), (59.9, "60 s"), (61, "1 min"), (7200, "2 h"), (200_000, "2 d")])
def test_span_prints_the_largest_unit_of_a_duration(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_recorded_times_are_printed_as_ages() -> None:
    assert (ago(stamp(NOW - 120), NOW), ago("", NOW)) == ("2 min ago", "")
    assert (until(LATER, NOW), until(stamp(NOW - 1), NOW), until("", NOW)) == ("in 1 min", "at once", "at once")


def test_moment_takes_a_duration_or_a_time_with_its_zone() -> None:
    assert moment("2h", NOW) == NOW + 7200
    assert moment("2030-01-31T12:00:00+02:00", NOW) == seconds_of("2030-01-31T10:00:00Z")


@pytest.mark.parametrize("text", ["soon", "2030-01-31T12:00:00", "0s", "-1h"])
def test_moment_refuses_anything_else(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        moment(text, NOW)
