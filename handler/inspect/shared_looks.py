"""Looks that many viewers share: one at a time a key, few at once in all, each answer kept for a moment.

Law: viewers never starve deployments: however many ask, there are `AT_ONCE` looks, each with a deadline that its requests keep; a
question that waits longer is refused, and a late answer serves the next one. None lasts longer than the function that it is asked in.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from handler.model import deadline
from handler.model.errors import AnnealError, ClusterUnavailable
from handler.model.singleflight import SingleFlight

T = TypeVar("T")
AT_ONCE = 4
KEPT = 16
"""Answers that are kept, at most."""


@dataclass(slots=True)
class SharedLooks:
    """The looks of one process. Safe to share between threads. `at_once`: how many may be under way; `clock`: of answers' ages."""

    at_once: int = AT_ONCE
    clock: Callable[[], float] = time.monotonic
    _flights: SingleFlight[Hashable, Any] = field(default_factory=SingleFlight)
    _kept: OrderedDict[Hashable, tuple[float, Any]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _places: threading.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._places = threading.Semaphore(self.at_once)

    def ask(self, key: Hashable, look: Callable[[], T], *, seconds: float, fresh: float = 0.0) -> T:
        """Return what a look finds, or found a moment ago. `seconds`: how long it may take; `fresh`: for which its answer serves others.

        Raises AnnealError: what the look raised; ClusterUnavailable: it takes longer, or too many others are under way.
        """
        known: T | None = self.known(key)
        if known is not None:
            return known
        seconds = deadline.left(seconds)
        flight = self._flights.start(key, lambda: self._looked(key, look, seconds, fresh), thread="look")
        try:
            answer: T = flight.result(seconds)
        except TimeoutError:
            raise ClusterUnavailable.of("look", f"hasn't ended within {seconds:.3g} s", fix="ask again in a moment") from None
        except AnnealError as error:
            raise type(error)(*error.problems) from None  # each caller's own: several threads raise it
        return answer

    def known(self, key: Hashable) -> Any:
        """Return an answer that is still fresh; None: there is none."""
        with self._lock:
            end, found = self._kept.get(key, (-math.inf, None))
        return found if self.clock() < end else None

    def forget(self, key: Hashable) -> None:
        """Look anew at the next question."""
        with self._lock:
            self._kept.pop(key, None)

    def _looked(self, key: Hashable, look: Callable[[], T], seconds: float, fresh: float) -> T:
        end = time.monotonic() + seconds
        if not self._places.acquire(timeout=seconds):
            raise ClusterUnavailable.of("look", f"{self.at_once} others are under way", fix="ask again in a moment")
        try:
            with deadline.until(end):
                found = look()
        finally:
            self._places.release()
        if fresh:
            self._keep(key, found, self.clock() + fresh)
        return found

    def _keep(self, key: Hashable, found: object, end: float) -> None:
        with self._lock:
            now = self.clock()
            for old in [each for each, (over, _) in self._kept.items() if over <= now]:
                del self._kept[old]
            self._kept[key] = end, found
            self._kept.move_to_end(key)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
