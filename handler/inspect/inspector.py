"""Answers questions about targets, each computed once however many ask at the same time, and kept for a moment.

Law: viewers never starve deployments: few look at once, each by a planner of its own, and a question that waits too long is refused.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from handler.app.build import Handler
from handler.inspect.cluster_events import Events
from handler.inspect.commit_diff import CommitDiff
from handler.inspect.facts import Json, cut, facts
from handler.inspect.gap import Gap, gap_of
from handler.inspect.inventory_tree import InventoryTree
from handler.inspect.live_questions import LiveQuestions
from handler.inspect.look import Ask, look
from handler.inspect.orphans import Orphans, orphans_of
from handler.inspect.pod_logs import PodLog
from handler.inspect.shared_looks import SharedLooks
from handler.model.errors import WorkerUnavailable
from handler.model.singleflight import SingleFlight

AT_ONCE = 2
"""Plans that are made at once for those who look."""
KEPT = 5.0
"""Seconds for which an answer serves the same question again."""
MOST_KEPT = 8
PATIENCE = 30.0
"""Seconds that a question waits for its turn; the web process waits longer (`outbox.PATIENCE`)."""
_MISTAKEN = "couldn't be looked at; the worker's log says why"


@dataclass(frozen=True, slots=True)
class _Answer:
    at: float
    gap: Gap
    orphans: Orphans


@dataclass(frozen=True, slots=True)
class Inspector:
    """The questions, a method each. Safe to share between threads. `handler`: the way to clusters and git hosts."""

    handler: Handler
    clock: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    patience: float = PATIENCE
    looks: SharedLooks = field(default_factory=SharedLooks)
    _flights: SingleFlight[Ask, _Answer] = field(default_factory=SingleFlight)
    _kept: dict[Ask, _Answer] = field(default_factory=dict)
    _turns: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(AT_ONCE))
    _targets: dict[str, threading.Lock] = field(default_factory=dict)

    def gap(self, ask: Ask) -> Gap:
        """Return the gap of a target; what goes wrong with that is in it. Raises WorkerUnavailable: too many look."""
        known = self._known(replace(ask, object=""))
        whole = known.gap.of(ask.object) if known and ask.object else None
        if whole and not any(each.omitted for each in whole.objects):
            return whole
        found = self._answer(ask).gap
        return found.of(ask.object) if ask.object else found

    def gap_facts(self, about: Mapping[str, Any]) -> Json:
        """Return the gap that another process asks for, as JSON, cut. `about`: name, commit, rollback, unpin, object. Raises as `gap`."""
        name, commit, of = (str(about.get(key) or "") for key in ("name", "commit", "object"))
        rollback, unpin = (about.get(key) is True for key in ("rollback", "unpin"))
        return cut(facts(self.gap(Ask(name, commit, rollback=rollback, unpin=unpin, object=of))))

    def orphans_facts(self, about: Mapping[str, Any]) -> Json:
        """Return the orphans that another process asks for, as JSON and cut. `about`: name. Raises as `orphans`."""
        return cut(facts(self.orphans(str(about["name"]))))

    def orphans(self, name: str) -> Orphans:
        """Return what the next run deletes of a target, and what it keeps. Raises WorkerUnavailable: too many look."""
        return self._answer(Ask(name)).orphans

    def _answer(self, ask: Ask) -> _Answer:
        known = self._known(ask)
        return known or self._flights.do(ask, lambda: self._anew(ask), lambda: WorkerUnavailable.of(f"target {ask.target}", _MISTAKEN))

    def _anew(self, ask: Ask) -> _Answer:
        with self._turn(ask.target):
            found = look(self.handler, ask, self.clock())
        answer = self._kept[ask] = _Answer(self.steady(), gap_of(found), orphans_of(found))
        return answer

    def _known(self, ask: Ask) -> _Answer | None:
        """Return an answer that is young enough; the others are let go of, and the oldest where many are kept."""
        now, kept = self.steady(), sorted(self._kept.copy().items(), key=lambda each: -each[1].at)
        for position, (each, answer) in enumerate(kept):
            if position >= MOST_KEPT or now - answer.at > KEPT:
                self._kept.pop(each, None)
        return self._kept.get(ask)

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

    def tree(self, name: str) -> InventoryTree:
        """Return what a target is made of, with how each object does: see `LiveQuestions`."""
        return LiveQuestions(self.handler, self.looks).tree(name)

    def events(self, name: str) -> Events:
        """Return the newest events about a target's objects and what they own: see `LiveQuestions`."""
        return LiveQuestions(self.handler, self.looks).events(name)

    def logs(self, name: str, subject: str) -> PodLog:
        """Return the end of a pod's log, of an object of a target's tree: see `LiveQuestions`."""
        return LiveQuestions(self.handler, self.looks).logs(name, subject)

    def diff(self, name: str, before: str, after: str) -> CommitDiff:
        """Return what changed between two commits of a target's record: see `LiveQuestions`."""
        return LiveQuestions(self.handler, self.looks).diff(name, before, after)
