"""What this process remembers of deliveries: within bounds whatever the number of targets, and nothing about those of others."""

from __future__ import annotations

import tracemalloc

import pytest

from handler.model.event import Decision, Event, RefChange
from handler.web import recent_deliveries
from handler.web.recent_deliveries import RecentDeliveries

pytestmark = pytest.mark.slow

EVENT = Event("github", "push", "1", ("https://git.example.com/acme/shop",), (RefChange("refs/heads/x", "a" * 40),), actor="ada")


@pytest.fixture
def known() -> RecentDeliveries:
    return RecentDeliveries()


def ignored(count: int, said: str = "it follows refs/heads/main, and refs/heads/x was pushed") -> list[Decision]:
    return [Decision(f"t{number}", matched=False, reason=said, change=EVENT.changes[0]) for number in range(count)]


def test_the_memory_of_deliveries_is_bounded_by_decisions_and_not_by_deliveries_alone(known: RecentDeliveries) -> None:
    few, many = ignored(5), ignored(1000)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(100):
            # each has a text of its own, as matching makes it
            known.decided(EVENT, [Decision(each.target, False, f"{each.reason} {number}", each.change) for each in many], {})
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 8 * 1024 * 1024
    shown = known.shown(lambda _name: True, everything=True, limit=500)
    assert [len(each["targets"]) for each in shown] == [1000] * (recent_deliveries.ROWS // 1000)
    for _ in range(recent_deliveries.REMEMBERED * 2):
        known.decided(EVENT, few, {})
    shown = known.shown(lambda _name: True, everything=True, limit=500)
    assert [len(each["targets"]) for each in shown] == [5] * recent_deliveries.REMEMBERED


def test_one_delivery_for_more_targets_than_are_remembered_is_still_shown(known: RecentDeliveries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_deliveries, "ROWS", 10)
    for _ in range(3):
        known.decided(EVENT, ignored(30), {})
    (shown,) = known.shown(lambda _name: True, everything=True, limit=500)
    assert len(shown["targets"]) == 30


def test_reading_recent_deliveries_stops_at_the_page_size(known: RecentDeliveries) -> None:
    for _ in range(50):
        known.decided(EVENT, ignored(20), {})
    asked: list[str] = []

    def readable(name: str) -> bool:
        asked.append(name)
        return True

    assert len(known.shown(readable, everything=True, limit=2)) == 2
    assert len(asked) == 40


def test_a_long_reason_is_cut(known: RecentDeliveries) -> None:
    known.decided(EVENT, ignored(1, "x" * 5000), {})
    (shown,) = known.shown(lambda _name: True, everything=True, limit=1)
    assert shown["targets"][0]["reason"] == "x" * 600 + " …"


def test_the_outcome_that_a_reader_sees_is_that_of_the_targets_it_sees(known: RecentDeliveries) -> None:
    there = Decision("there", matched=True, reason="it follows refs/heads/x", change=EVENT.changes[0])
    known.decided(EVENT, [*ignored(1), there], {"there": "there.1"})
    outcomes = {
        name: [(each["outcome"], [row["run"] for row in each["targets"]]) for each in known.shown(name.__eq__, everything=False, limit=5)]
        for name in ("t0", "there", "elsewhere")
    }
    assert outcomes == {"t0": [("ignored", [None])], "there": [("matched", ["there.1"])], "elsewhere": []}
