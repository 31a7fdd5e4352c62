"""What is asked for again and again is due once a moment, and what is gone is due no more."""

from __future__ import annotations

import pytest

from handler.app.instances import watch
from handler.app.instances.watch import SPACING, DueJobs


class Clock:
    """The module's clock, which stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(watch, "time", made)
    return made


def test_the_first_event_is_due_at_once_and_those_after_it_once_a_moment(clock: Clock) -> None:
    due = DueJobs()
    for _ in range(3):
        due.put("a")
    assert due.take(0.0) == ["a"]
    due.put("a")
    due.put("a")
    assert due.take(0.0) == []
    clock.now += SPACING
    assert due.take(0.0) == ["a"]
    clock.now += 2 * SPACING
    assert due.take(0.0) == []
    due.put("a")
    assert due.take(0.0) == ["a"]


def test_what_is_due_later_keeps_its_time(clock: Clock) -> None:
    due = DueJobs()
    due.put("later", 5.0)
    due.put("later")
    due.put("now")
    assert due.take(0.0) == ["now"]
    clock.now += 5.0
    assert due.take(0.0) == ["later"]


def test_what_is_forgotten_isnt_due_and_leaves_nothing(clock: Clock) -> None:
    due = DueJobs()
    due.put("a")
    due.forget("a")
    due.forget("never")
    assert due.take(0.0) == []
    for number in range(100):
        due.put(str(number))
    assert len(due.take(0.0)) == 100
    clock.now += SPACING
    due.put("b")
    assert due.take(0.0) == ["b"]
    assert (due._due, due._asked) == ({}, {"b": clock.now})
