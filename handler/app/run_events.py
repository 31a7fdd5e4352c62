"""Fans events out to feedback by one literal table: a row names a class of `handler.feedback`, loaded when a process adds it.

    announce(event)  ->  a queue of each subscriber  ->  its thread  ->  hear(event)

Law: an announcement never waits and never raises, so no subscriber harms a run, a door or another subscriber. A slow subscriber loses the
oldest events, a failing one the event at which it fails. Each gets its events in the order of the announcements.
"""

from __future__ import annotations

import importlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

from handler.model.run_event import RunEvent

_LOG = logging.getLogger("anneal.feedback")
QUEUE = 1000  # events queued for one subscriber, at most
POSTED = 10.0  # seconds that git hosts have at the end of a process to take commit statuses; the rest waits in the records
SETTLE = 1.0  # seconds that a scrape, or an answer of a function, waits for the events announced before it


class Subscriber(Protocol):
    """Reports events."""

    hears: ClassVar[tuple[type, ...]]
    """The kinds of events that it gets."""

    def hear(self, event: Any) -> None:
        """Report one event; called from one thread. An exception is logged."""


FEEDBACK: Mapping[str, str] = {
    "cli": "handler.feedback.cli:RunLines",
    "door": "handler.feedback.prometheus:DoorMetrics",
    "emf": "handler.feedback.emf:EmfLines",
    "live": "handler.feedback.live_runs:LiveRuns",
    "locutus": "handler.feedback.locutus:LocutusMetrics",
    "log": "handler.feedback.log:EventLog",
    "prometheus": "handler.feedback.prometheus:RunMetrics",
    "resource": "handler.app.instance_statuses:InstanceStatuses",
    "statuses": "handler.app.commit_statuses.subscriber:CommitStatuses",
    "wakes": "handler.app.wakes:Wakes",
}


def kind(name: str) -> Any:
    """Return the class of a row of `FEEDBACK`."""
    module, _, found = FEEDBACK[name].partition(":")
    return getattr(importlib.import_module(module), found)


class RunEvents:
    """The subscribers of one process. Safe to share between threads; no thread is started before the first event, so after any fork."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, _Subscription] = {}

    def add(self, name: str, *args: Any, **named: Any) -> Any:
        """Make the subscriber of a row of `FEEDBACK` with these arguments, subscribe it from now on, and return it."""
        subscriber: Subscriber = kind(name)(*args, **named)
        self._subscriptions = {**self._subscriptions, name: _Subscription(name, subscriber)}
        return subscriber

    def announce(self, event: RunEvent) -> None:
        """Queue an event for all that hear its kind; returns at once."""
        for subscription in self._subscriptions.values():
            subscription.put(event)

    def drained(self, seconds: float, *names: str) -> bool:
        """Wait until the events announced by now are reported, by `names` if given; return whether they are, after `seconds` at most."""
        end = time.monotonic() + seconds
        waited = [each.drained(end) for name, each in self._subscriptions.items() if name in names or not names]
        return all(waited)

    def remove(self, name: str, seconds: float) -> None:
        """End one subscription, after waiting as `drained` does."""
        self.drained(seconds, name)
        left = dict(self._subscriptions)
        if gone := left.pop(name, None):
            self._subscriptions = left
            gone.close()

    def close(self, seconds: float) -> bool:
        """Wait as `drained` does, then end every subscription."""
        done = self.drained(seconds)
        for subscription in self._subscriptions.values():
            subscription.close()
        return done


class _Subscription:
    """One subscriber with its queue and its thread. Events are numbered from 1, in the order of their announcement."""

    def __init__(self, name: str, subscriber: Subscriber) -> None:
        self._name = name
        self._subscriber = subscriber
        self._waiting: deque[RunEvent] = deque()
        self._changed = threading.Condition()
        self._announced = self._reported = 0
        self._thread: threading.Thread | None = None
        self._drops = self._closed = False

    def put(self, event: RunEvent) -> None:
        """Queue an event, in the place of the oldest one if there is no room."""
        if not isinstance(event, self._subscriber.hears):
            return
        with self._changed:
            if self._closed:
                return
            full = len(self._waiting) >= QUEUE
            if full:
                self._waiting.popleft()
            begins, self._drops = full and not self._drops, full or self._drops
            self._waiting.append(event)
            self._announced += 1
            if self._thread is None:
                self._thread = _started(self._work, f"feedback {self._name}")
            self._changed.notify_all()
        if begins:
            _started(self._tell_drops, "feedback")  # on another thread: the slow subscriber may be the log itself

    def drained(self, end: float) -> bool:
        """Wait until the events announced by now are reported or dropped; return whether they are. `end`: monotonic seconds."""
        with self._changed:
            wanted = self._announced
            self._changed.wait_for(lambda: self._reported >= wanted or self._closed, max(end - time.monotonic(), 0.0))
            return self._reported >= wanted

    def close(self) -> None:
        """Drop queued events, and end the thread after the present one."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                event, number = self._waiting.popleft(), self._announced - len(self._waiting)
            try:
                self._subscriber.hear(event)
            except Exception:  # noqa: BLE001 - the next events are still reported
                about = {"event": type(event).__name__, "target": getattr(event, "target", "")}
                _LOG.exception("an event wasn't reported", extra={"fields": {**about, "feedback": self._name}})
            with self._changed:
                self._reported = number
                self._drops = self._drops and bool(self._waiting)
                self._changed.notify_all()

    def _tell_drops(self) -> None:
        _LOG.warning("feedback falls behind; the oldest events are dropped", extra={"fields": {"feedback": self._name}})


def _started(work: Callable[[], None], name: str) -> threading.Thread | None:
    thread = threading.Thread(target=work, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread
