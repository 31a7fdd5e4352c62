"""Subscribers of events: one that raises, hangs or falls behind harms neither the announcing thread nor another subscriber."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from handler.app import run_events
from handler.app.run_events import FEEDBACK, QUEUE, RunEvents, kind
from handler.model.run_event import HealthChanged, RunEvent, RunPhase
from infra.house.sources import ROOT
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


class Heard:
    """A subscriber. `meet`: called with each event before it is noted."""

    hears: ClassVar[tuple[type, ...]] = (HealthChanged,)

    def __init__(self, meet: Callable[[HealthChanged], object] = lambda _: None) -> None:
        self.meet = meet
        self.events: list[str] = []

    def hear(self, event: HealthChanged) -> None:
        self.meet(event)
        self.events.append(event.target)


def health(target: str) -> HealthChanged:
    return HealthChanged(target, "", "healthy")


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunEvents]:
    rows = {**FEEDBACK, "one": f"{__name__}:Heard", "other": f"{__name__}:Heard"}
    monkeypatch.setattr(run_events, "FEEDBACK", rows)
    made = RunEvents()
    yield made
    made.close(0)


def test_each_feedback_row_gets_its_event_kinds_in_order(events: RunEvents) -> None:
    one, other = events.add("one"), events.add("other")
    events.announce(RunPhase("shop", "shop.1", "a" * 40, "waiting"))
    wanted = [f"t{number}" for number in range(100)]
    for target in wanted:
        events.announce(health(target))
    assert events.drained(PATIENCE)
    assert one.events == other.events == wanted


def test_a_feedback_row_that_raises_loses_that_event_alone(events: RunEvents, caplog: pytest.LogCaptureFixture) -> None:
    def meet(event: HealthChanged) -> None:
        if event.target == "bad":
            raise ValueError("no")

    one, other = events.add("one", meet), events.add("other")
    for target in ("good", "bad", "better"):
        events.announce(health(target))
    assert events.drained(PATIENCE)
    assert (one.events, other.events) == (["good", "better"], ["good", "bad", "better"])
    assert [record.message for record in caplog.records] == ["an event wasn't reported"]


def test_a_feedback_row_that_hangs_delays_nothing_and_keeps_the_newest_events(events: RunEvents, caplog: pytest.LogCaptureFixture) -> None:
    hangs, goes_on = threading.Event(), threading.Event()

    def meet(_event: HealthChanged) -> None:
        hangs.set()
        assert goes_on.wait(PATIENCE)

    one, other = events.add("one", meet), events.add("other")
    events.announce(health("first"))
    assert hangs.wait(PATIENCE)
    wanted = [f"t{number}" for number in range(2 * QUEUE)]
    for target in wanted:
        events.announce(health(target))
        assert events.drained(PATIENCE, "other")
    assert not events.drained(0.01, "one")
    assert other.events == ["first", *wanted]
    goes_on.set()
    assert events.drained(PATIENCE)
    assert one.events == ["first", *wanted[-QUEUE:]]
    assert [record.message for record in caplog.records].count("feedback falls behind; the oldest events are dropped") == 1


def test_close_waits_no_longer_than_its_timeout_and_no_event_follows_it(events: RunEvents) -> None:
    goes_on = threading.Event()
    one = events.add("one", lambda _: goes_on.wait(PATIENCE))
    for target in ("first", "second"):
        events.announce(health(target))
    assert not events.close(0.01)
    goes_on.set()
    events.announce(health("late"))
    assert "late" not in one.events


def test_a_removed_subscriber_has_heard_what_came_before(events: RunEvents) -> None:
    one, other = events.add("one"), events.add("other")
    events.announce(health("before"))
    events.remove("one", PATIENCE)
    events.announce(health("after"))
    assert events.drained(PATIENCE)
    assert (one.events, other.events) == (["before"], ["before", "after"])


def test_no_thread_is_started_before_the_first_event(events: RunEvents, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    start = run_events._started

    def noted(work: Callable[[], None], name: str) -> threading.Thread | None:
        started.append(name)
        return start(work, name)

    monkeypatch.setattr(run_events, "_started", noted)
    one = events.add("one")
    assert started == []
    events.announce(health("shop"))
    assert events.drained(PATIENCE)
    assert (started, one.events) == (["feedback one"], ["shop"])


def test_each_feedback_row_names_its_event_kinds() -> None:
    kinds = set(RunEvent.__args__)
    heard = [set(kind(name).hears) for name in FEEDBACK]
    assert all(each and each <= kinds for each in heard)


def test_a_process_loads_the_feedback_that_it_adds_and_no_other() -> None:
    code = "import sys, handler.wsgi; print(*[name for name in sys.modules if name.startswith('handler.feedback.')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"handler.feedback.prometheus", "handler.feedback.exposition"}
