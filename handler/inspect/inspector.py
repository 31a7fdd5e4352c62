"""Answers questions about targets, each computed once however many ask at the same time, and kept for a moment.

Law: viewers never starve deployments: few look at once, each by a planner of its own, and who waits too long is sent away.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from handler.app.build import Handler
from handler.inspect.gap import FIELDS, Gap, gap_of
from handler.inspect.look import Ask, Look, look
from handler.inspect.orphans import Orphans, orphans_of
from handler.model.errors import WorkerUnavailable
from handler.model.singleflight import SingleFlight
from handler.plan.gap import MOST

AT_ONCE = 2
"""Plans that are made at once for those who look."""
KEPT = 5.0
"""Seconds for which an answer serves whoever asks the same."""
MOST_KEPT = 8
PATIENCE = 30.0
"""Seconds that a question waits for its turn; the web process waits longer (`outbox.PATIENCE`)."""
_MISTAKEN = "couldn't be looked at; the worker's log says why"


@dataclass(frozen=True, slots=True)
class Inspector:
    """The questions, a method each. Safe to share between threads. `handler`: the way to clusters and git hosts."""

    handler: Handler
    clock: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    patience: float = PATIENCE
    _flights: SingleFlight[Ask, Look] = field(default_factory=SingleFlight)
    _kept: dict[Ask, tuple[float, Look]] = field(default_factory=dict)
    _turns: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(AT_ONCE))
    _targets: dict[str, threading.Lock] = field(default_factory=dict)

    def gap(self, name: str, commit: str = "", *, rollback: bool = False, unpin: bool = False, object: str = "", most: int = MOST) -> Gap:
        """Return the gap of a target to what its next run would deploy, or to a commit, by a rollback, or once it is unpinned.

        `object`: that one alone, with its equal fields, too; `most`: how many of those are listed. What goes wrong with the target is in it.
        Raises WorkerUnavailable: too many look.
        """
        ask = Ask(name, commit, rollback=rollback, unpin=unpin, most=most)
        if not object:
            return gap_of(self._look(ask), fields=max(most, FIELDS))
        known = self._known(ask)
        whole = gap_of(known).of(object) if known else None
        if whole and not any(each.omitted for each in whole.objects):
            return whole
        return gap_of(self._look(replace(ask, object=object)), fields=max(most, FIELDS)).of(object)

    def orphans(self, name: str) -> Orphans:
        """Return what the next run deletes of a target and what it keeps. Raises WorkerUnavailable: too many look."""
        return orphans_of(self._look(Ask(name)))

    def _look(self, ask: Ask) -> Look:
        known = self._known(ask)
        return known or self._flights.do(ask, lambda: self._anew(ask), lambda: WorkerUnavailable.of(f"target {ask.target}", _MISTAKEN))

    def _anew(self, ask: Ask) -> Look:
        with self._turn(ask.target):
            found = look(self.handler, ask, self.clock())
        self._kept[ask] = self.steady(), found
        self._forget()
        return found

    def _known(self, ask: Ask) -> Look | None:
        self._forget()
        kept = self._kept.get(ask)
        return kept[1] if kept else None

    def _forget(self) -> None:
        """Let go of what is old, and of the oldest where many are kept: a look holds a whole plan."""
        now, kept = self.steady(), sorted(self._kept.copy().items(), key=lambda each: -each[1][0])
        for position, (ask, (at, _)) in enumerate(kept):
            if position >= MOST_KEPT or now - at > KEPT:
                self._kept.pop(ask, None)

    @contextlib.contextmanager
    def _turn(self, target: str) -> Iterator[None]:
        """Wait until few others look, and none at this target: its planner is of one thread at a time."""
        with self._within(self._targets.setdefault(target, threading.Lock()), target), self._within(self._turns, target):
            yield

    @contextlib.contextmanager
    def _within(self, gate: threading.Lock | threading.BoundedSemaphore, target: str) -> Iterator[None]:
        if not gate.acquire(timeout=self.patience):
            raise WorkerUnavailable.of(f"target {target}", "waits for other looks to end", fix="ask again in some seconds")
        try:
            yield
        finally:
            gate.release()
