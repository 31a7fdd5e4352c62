"""When a worker reads why a target isn't healthy: soon, then ever more seldom, but never not at all."""

from __future__ import annotations

import time

import pytest

from handler.serve.health.reasons import due
from tests.unit.serve.watching import API, live, watched


def looks(monkeypatch: pytest.MonkeyPatch, seconds: int, *, ready: int) -> list[int]:
    """Return after how many seconds reasons are read, of a target that is so from the first one on."""
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    shop, last, found = watched("shop", API), 0.0, []
    shop.see(API, live(shop, ready=ready))
    for now in range(1000, 1000 + seconds):
        shop.look(now)
        if now >= due(shop, last, 60.0, now):
            last = now
            found.append(now - 1000)
    return found


def test_the_reasons_of_what_stays_ill_are_read_again_and_again_in_pauses_that_double(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks(monkeypatch, 3000, ready=0) == [2, 16, 76, 152, 304, 608, 1208, 1808, 2408]


def test_what_is_well_needs_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks(monkeypatch, 3000, ready=1) == []
