"""What was asked by name (replay) and acknowledged to its sender, kept by the web process until the worker tells its end.

A push needs no such care, for the tick finds its commit; an approval, a pin or a forced run is asked only once. Law: a request is
handed to a second worker only if the first one is gone, and only if the target's record doesn't show its end.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from handler.model.errors import TooManyRequests
from handler.queues.pending import Work

MOST = 100
"""Requests of one target that one token may have open at once: a pipeline's leave room for an operator's."""
_UNKNOWN = "?"
"""The life of a worker that was sent a request and didn't acknowledge it."""


@dataclass(frozen=True, slots=True)
class UnfinishedRequest:
    """A request whose end isn't known. `boot`: the life of the worker that has it, empty while none has; `run`: the run it is in there."""

    work: Work
    run: str = ""
    boot: str = ""


class UnfinishedRequests:
    """Thread-safe; by the id that its sender has."""

    def __init__(self) -> None:
        self._open: dict[str, UnfinishedRequest] = {}
        self._changed = threading.Condition()
        self._closed = False

    def add(self, work: Work) -> None:
        """Keep a request. Raises TooManyRequests."""
        job = work.job
        with self._changed:
            open_jobs = (each.work.job for each in self._open.values())
            if sum((each.target, each.actor) == (job.target, job.actor) for each in open_jobs) >= MOST:
                raise TooManyRequests.of(f"target {job.target}", f"{MOST} requests of {job.actor} wait for their end already")
            self._open[work.run] = UnfinishedRequest(work)

    def taken(self, runs: tuple[str, ...], run: str, boot: str) -> None:
        """Note which life of the worker has these requests, and in which run."""
        with self._changed:
            for request in runs:
                if request in self._open:
                    self._open[request] = UnfinishedRequest(self._open[request].work, run, boot)
            self._changed.notify_all()

    def doubted(self, runs: tuple[str, ...]) -> frozenset[str]:
        """Note that it is unknown whether the worker has these; return those that are kept, and so will be found out."""
        self.taken(runs, "", _UNKNOWN)
        with self._changed:
            return frozenset(run for run in runs if run in self._open)

    def ended(self, request: str) -> None:
        """Forget a request whose end is known."""
        with self._changed:
            self._open.pop(request, None)

    def handed(self) -> dict[str, UnfinishedRequest]:
        """Return the requests that a worker has, or may have."""
        with self._changed:
            return {request: each for request, each in self._open.items() if each.boot}

    def unhanded(self) -> tuple[Work, ...]:
        """Return the requests that no worker has, as far as is known."""
        with self._changed:
            return tuple(each.work for each in self._open.values() if each.boot in ("", _UNKNOWN))

    def find(self, request: str) -> Work | None:
        """Return a request that is kept."""
        with self._changed:
            return self._open[request].work if request in self._open else None

    def wait(self) -> bool:
        """Wait until a worker has something that is kept; False once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or any(each.boot for each in self._open.values()))
            return not self._closed

    def close(self) -> None:
        """End the waiting."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __len__(self) -> int:
        with self._changed:
            return len(self._open)
