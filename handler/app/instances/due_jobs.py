"""Which instances have something due when: what is asked for again and again is done once a moment."""

from __future__ import annotations

import threading
import time

SPACING = 1.0  # seconds between two times that one of them is due


class DueJobs:
    """Which targets have a run due when, each once. Safe to share between threads. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        self._changed = threading.Condition()

    def put(self, name: str, after: float = 0.0) -> None:
        """Let a target run after so many seconds, and not sooner than a moment after its last one; what is due already stays so."""
        now = time.monotonic()
        with self._changed:
            self._due.setdefault(name, max(now + after, self._asked.get(name, now - SPACING) + SPACING))
            self._changed.notify_all()

    def forget(self, name: str) -> None:
        """Let a target have no run."""
        with self._changed:
            self._due.pop(name, None)
            self._asked.pop(name, None)

    def take(self, longest: float) -> list[str]:
        """Return what is due, waiting so many seconds for it at most."""
        end = time.monotonic() + longest
        with self._changed:
            while not (ready := self._ready()) and (left := end - time.monotonic()) > 0:
                soonest = min(self._due.values(), default=end) - time.monotonic()
                self._changed.wait(max(min(left, soonest), 0.001))
            now = time.monotonic()
            self._asked = {name: at for name, at in self._asked.items() if now - at < SPACING}
            for name in ready:
                del self._due[name]
                self._asked[name] = now
            return ready

    def _ready(self) -> list[str]:
        now = time.monotonic()
        return [name for name, at in self._due.items() if at <= now]
