"""What comes back after a while: requests whose commit the git host doesn't show yet.

At most one a target; a newer push takes it along. What names no commit doesn't: an early look for it would be spent in vain.
"""

from __future__ import annotations

import threading

from handler.queues.pending import Work


class DelayedWork:
    """A thread-safe store; times are monotonic seconds."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[float, Work]] = {}
        self._lock = threading.Lock()

    def put(self, work: Work, at: float) -> Work:
        """Keep a request until `at`, with what is kept of its target already; return both as one."""
        target = work.job.target
        with self._lock:
            _, older = self._waiting.pop(target, (0.0, None))
            merged = older.merged(work) if older else work
            self._waiting[target] = at, merged
            return merged

    def joined(self, work: Work) -> Work:
        """Return a newer push with what is kept of its target, which isn't kept any longer; any other request alone."""
        if not work.job.hint or work.job.acts:
            return work
        with self._lock:
            _, older = self._waiting.pop(work.job.target, (0.0, None))
            return older.merged(work) if older else work

    def due(self, now: float) -> tuple[Work, ...]:
        """Return, once, what has waited long enough."""
        with self._lock:
            found = [target for target, (at, _) in self._waiting.items() if at <= now]
            return tuple(self._waiting.pop(target)[1] for target in found)

    def next(self) -> float:
        """Return when the next one is due; infinity: none."""
        with self._lock:
            return min((at for at, _ in self._waiting.values()), default=float("inf"))
