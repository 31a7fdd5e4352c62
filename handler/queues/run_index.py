"""What the worker remembers of its runs: those that wait, those under way, and the last that ended.

It is memory only. What was recorded is found again in the target's state; a run that left no trace there is known here alone.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from handler.queues.pending import Work

ENDED = 1000
"""Runs that are remembered after their end."""
WHOLE, SHORT = 50, 20
"""Of so many ends all is remembered; of those before, so many items of each list: a failed run has hundreds of problems."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run. `requests`: the ids that were merged into it, its own first; `since`: when it came into its status; `end`: how it ended."""

    run: str
    target: str
    trigger: str
    actor: str
    requests: tuple[str, ...]
    status: Literal["queued", "running", "ended"]
    since: float
    end: Mapping[str, Any] = field(default_factory=dict)


class RunIndex:
    """Thread-safe, by its store's `lock` if it has one. `boot` names this life of the worker: of other lives nothing is known here."""

    def __init__(self, size: int = ENDED, lock: threading.Condition | None = None) -> None:
        self.boot = secrets.token_hex(8)
        self._size = size
        self._entries: OrderedDict[str, RunEntry] = OrderedDict()
        self._of: dict[str, str] = {}
        self._ended = 0
        self._whole: deque[str] = deque()
        self._lock = lock or threading.Condition()

    def queued(self, work: Work) -> None:
        """Note what waits; a run that has begun meanwhile isn't put back."""
        with self._lock:
            known = self._entries.get(work.run)
            if known is None or known.status == "queued":
                self._write(work, "queued", {})

    def running(self, work: Work) -> None:
        """Note that a run has begun."""
        with self._lock:
            self._write(work, "running", {})

    def back(self, work: Work) -> None:
        """Note that a run has found nothing to do yet, and waits again under its id."""
        with self._lock:
            self._write(work, "queued", {})

    def ended(self, work: Work, end: Mapping[str, Any]) -> None:
        """Note how a run ended, and forget the oldest end where there are too many."""
        with self._lock:
            self._write(work, "ended", end)
            self._entries.move_to_end(work.run)
            self._ended += 1
            self._whole.append(work.run)
            if len(self._whole) > WHOLE:
                oldest = self._whole.popleft()
                if entry := self._entries.get(oldest):
                    self._entries[oldest] = replace(entry, end=_short(entry.end))
            while self._ended > self._size:
                entry = self._entries.pop(next(run for run, entry in self._entries.items() if entry.status == "ended"))
                self._ended -= 1
                for request in entry.requests:
                    self._of.pop(request, None)

    def find(self, request: str) -> RunEntry | None:
        """Return the run that a request is in, by the id that its sender has."""
        with self._lock:
            return self._entries.get(self._of.get(request, ""))

    def _write(self, work: Work, status: Literal["queued", "running", "ended"], end: Mapping[str, Any]) -> None:
        job, known = work.job, self._entries.get(work.run)
        for merged in work.runs[1:]:
            if gone := self._entries.pop(merged, None):  # it waited under an id of its own, until it came into this run
                self._ended -= gone.status == "ended"
        for dropped in set(known.requests if known else ()) - set(work.runs):
            self._of.pop(dropped, None)
        self._of |= dict.fromkeys(work.runs, work.run)
        entry = RunEntry(work.run, job.target, job.cause, job.actor, work.runs, status, time.time(), end)
        self._entries[work.run] = replace(entry, since=known.since) if known and known.status == status else entry


def _short(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _short(each) for key, each in value.items()}
    return [_short(each) for each in value[:SHORT]] if isinstance(value, list | tuple) else value
