"""Pauses grow by their factor up to the longest, however many failures there were."""

from __future__ import annotations

import pytest

from handler.model.backoff import TRANSIENT, Backoff


@pytest.mark.parametrize(
    ("backoff", "pauses"),
    [
        (TRANSIENT, [15, 15, 15, 30, 60, 120, 240, 300, 300]),
        (Backoff(0.25, 2.0, factor=1.5), [0.25, 0.25, 0.25, 0.375, 0.5625, 0.84375, 1.265625, 1.8984375, 2.0]),
    ],
    ids=str,
)
def test_pauses_grow_up_to_the_longest(backoff: Backoff, pauses: list[float]) -> None:
    assert [backoff.after(failures) for failures in (-1, 0, 1, 2, 3, 4, 5, 6, 7)] == pauses
    assert backoff.after(10**9) == pauses[-1]
