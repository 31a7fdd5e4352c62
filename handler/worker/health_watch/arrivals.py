"""Targets that come and go while health is watched: instances. Noted by any thread, taken by the one that watches their cluster."""

from __future__ import annotations

import queue
from collections.abc import Iterator

from handler.config.settings import Target

UNREAD = "unread"
"""The version of a record that wasn't looked at yet: it is read, once."""


class Arrivals:
    """What has come and gone since it was asked last. Safe to share between threads.

    `joined`: those whose members may have been seen before they came, so that they must be looked for anew.
    """

    def __init__(self) -> None:
        self._news: queue.SimpleQueue[tuple[str, Target | None]] = queue.SimpleQueue()
        self.joined: set[str] = set()

    def add(self, target: Target) -> None:
        """Note that a target is to be watched from now on."""
        self._news.put((target.name, target))

    def remove(self, name: str) -> None:
        """Note that a target isn't to be watched any more."""
        self._news.put((name, None))

    def taken(self) -> Iterator[tuple[str, Target | None]]:
        """Yield what has come (a target) and gone (None), each once, as it is by now."""
        last: dict[str, Target | None] = {}
        while not self._news.empty():
            name, target = self._news.get_nowait()
            last[name] = target
        yield from last.items()
