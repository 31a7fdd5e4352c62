"""How long an outgoing call may take: never beyond the deadline."""

from __future__ import annotations

import time

from handler.model import deadline


def test_the_nearest_deadline_limits_a_timeout() -> None:
    assert deadline.left(60.0) == 60.0
    with deadline.until(time.monotonic() + 1e6):
        assert deadline.left(60.0) == 60.0
        with deadline.until(time.monotonic() + 500.0):
            assert deadline.LEAST < deadline.left(1e6) <= 500.0
            assert deadline.left(0.5) == 0.5
        assert deadline.left(60.0) == 60.0
    with deadline.until(time.monotonic() - 1.0):
        assert deadline.left(60.0) == deadline.LEAST
