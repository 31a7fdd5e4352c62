"""When a worker reads why a target isn't healthy: soon, then ever more seldom, but never not at all."""

from __future__ import annotations

import time

import pytest

from handler.worker.health_watch.reasons import due
from tests.unit.worker.health_watch.watched_objects import API, WEB, live, watched


def looks(monkeypatch: pytest.MonkeyPatch, seconds: int, *, ready: int) -> list[int]:
    """Return after how many seconds reasons are read, of a target that is so from the first one on."""
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    shop, last, found = watched("shop", API), 0.0, []
    shop.see(API, live(shop, ready=ready))
    for now in range(1000, 1000 + seconds):
        shop.look(now)
        assert shop.is_quiet is (ready == 1), "of a quiet target nothing is asked at all"
        if now >= due(shop, last, 60.0, now):
            last = now
            found.append(now - 1000)
    return found


def test_evidence_of_unhealthy_objects_is_read_again_with_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks(monkeypatch, 3000, ready=0) == [2, 16, 76, 152, 304, 608, 1208, 1808, 2408]


def test_a_healthy_object_costs_no_read_of_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks(monkeypatch, 3000, ready=1) == []


def test_an_object_that_becomes_unhealthy_later_has_its_evidence_read_as_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    shop = watched("shop", API, WEB)
    shop.see(API, live(shop, ready=0))
    shop.see(WEB, live(shop, ready=1, identity=WEB))
    shop.look(clock[0])
    clock[0] = 4000.0
    shop.see(WEB, live(shop, ready=0, identity=WEB))
    assert due(shop, 3900.0, 60.0, clock[0]) == 4002.0
    assert due(shop, 3999.0, 60.0, clock[0]) == 4007.0, "but not again and again"
    assert due(shop, 4007.0, 60.0, clock[0]) == 4015.5
