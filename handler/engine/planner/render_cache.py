"""Which targets' renders stay in memory from run to run: those that ran last, so that it doesn't grow with the number of targets."""

from __future__ import annotations

import threading
from typing import Protocol

_OBJECTS = 5000  # objects kept altogether; of a target that has more on its own, all


class CachedRenders(Protocol):
    """What was rendered for one target and may be rendered again."""

    @property
    def size(self) -> int:
        """How many objects are kept."""

    def forget(self) -> None:
        """Keep nothing."""


class RenderCache:
    """Has the least recently run targets forget their renders, once there are too many. Safe to share between threads."""

    def __init__(self, most: int = _OBJECTS) -> None:
        self._most = most
        self._kept: dict[str, tuple[CachedRenders, int]] = {}
        self._lock = threading.Lock()

    def drop(self, target: str) -> None:
        """Let go of a target that is gone."""
        with self._lock:
            self._kept.pop(target, None)

    def ran(self, target: str, rendered: CachedRenders) -> None:
        """Note that a target ran; what it keeps goes last."""
        with self._lock:
            self._kept.pop(target, None)
            self._kept[target] = rendered, rendered.size
            kept = sum(size for _, size in self._kept.values())
            forgotten = []
            for name, (each, size) in list(self._kept.items())[:-1]:
                if kept <= self._most:
                    break
                kept -= size
                forgotten.append(each)
                del self._kept[name]
        for each in forgotten:
            each.forget()
