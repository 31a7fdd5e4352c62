"""Until when a person pauses a target, as people write it."""

from __future__ import annotations

import pytest

from handler.app.pause import moment, pause_of
from handler.state.record_format import seconds_of

NOW = 1_800_000_000.0


def test_moment_takes_a_duration_or_a_time_with_its_zone() -> None:
    assert moment("2h", NOW) == NOW + 7200
    assert moment("2030-01-31T12:00:00+02:00", NOW) == seconds_of("2030-01-31T10:00:00Z")


@pytest.mark.parametrize("text", ["soon", "2030-01-31T12:00:00", "0s", "-1h"])
def test_moment_refuses_anything_else(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        moment(text, NOW)


def test_a_pause_without_an_end_lasts() -> None:
    assert pause_of("ada", "a migration", "").until == ""
    assert pause_of("ada", "", "2h").holds(seconds_of(pause_of("ada", "", "").at) + 7000)
