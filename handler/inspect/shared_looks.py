"""Looks that many viewers share: one at a time a key, few at once in all, each answer kept for a moment.

    ask --> a flight a key, on a thread of its own: its turn among those of one name, a place among all, the look --> its answer, kept

Law: viewers never starve deployments: however many ask, there are `AT_ONCE` looks, each with a deadline that its turn, its place and its
requests keep; a question that waits longer is refused, and a late answer serves the next one. None lasts longer than the function that it
is asked in. What is kept may hold secrets: it is forgotten once it is old, whether another asks or not.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from handler.model import deadline
from handler.model.errors import AnnealError, ClusterUnavailable
from handler.model.singleflight import SingleFlight

T = TypeVar("T")
AT_ONCE = 4
KEPT = 16
"""Answers that are kept, at most."""
FAILED = 10.0
"""Seconds for which others hear at once that a cluster didn't answer."""
_LONGEST = 3600.0  # seconds of one wait


@dataclass(slots=True)
class SharedLooks:
    """The looks of one process. Safe to share between threads. `at_once`: how many may be under way; `clock`: of answers' ages."""

    at_once: int = AT_ONCE
    clock: Callable[[], float] = time.monotonic
    _flights: SingleFlight[Hashable, Any] = field(default_factory=SingleFlight)
    _ends: WeakKeyDictionary[Future[Any], float] = field(default_factory=WeakKeyDictionary)
    _kept: OrderedDict[Hashable, tuple[float, Any]] = field(default_factory=OrderedDict, repr=False)
    _turns: dict[str, threading.Lock] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _forgets: bool = False
    _places: threading.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._places = threading.Semaphore(self.at_once)

    def ask(self, key: Hashable, look: Callable[[], T], *, seconds: float, fresh: float = 0.0, alone: str = "", anew: bool = False) -> T:
        """Return what a look finds, or found a moment ago. `seconds`: how long it may take; `fresh`: for which its answer serves others.

        `alone`: no two looks of this name are under way at once; `anew`: what began before doesn't do. Raises AnnealError: what the look
        raised, or has raised a moment ago; ClusterUnavailable: it takes longer, or too many others are under way.
        """
        if anew:
            self.forget(key)
        known: T | ClusterUnavailable | None = None if anew else self._known(key)  # an older look may end just now
        if isinstance(known, ClusterUnavailable):
            raise _own(known)
        if known is not None:
            return known
        end = time.monotonic() + deadline.left(seconds)
        asked = (key, object()) if anew else key
        flight = self._flights.start(asked, lambda: self._looked(key, look, end, fresh, alone), thread="look")
        with self._changed:
            end = self._ends.setdefault(flight, end)
        waits = max(end - time.monotonic(), 0.0)
        try:
            answer: T = flight.result(waits)
        except TimeoutError:
            raise ClusterUnavailable.of("look", f"hasn't ended within {waits:.3g} s", fix="ask again in a moment") from None
        except AnnealError as error:
            raise _own(error) from None
        return answer

    def known(self, key: Hashable) -> Any:
        """Return an answer that is still fresh; None: there is none."""
        found = self._known(key)
        return None if isinstance(found, ClusterUnavailable) else found

    def forget(self, key: Hashable) -> None:
        """Look anew at the next question."""
        with self._changed:
            self._kept.pop(key, None)

    def _known(self, key: Hashable) -> Any:
        with self._changed:
            end, found = self._kept.get(key, (-math.inf, None))
        return found if self.clock() < end else None

    # --- on a look's thread
    def _looked(self, key: Hashable, look: Callable[[], T], end: float, fresh: float, alone: str) -> T:
        turn = self._turns.setdefault(alone, threading.Lock()) if alone else None
        if turn and not turn.acquire(timeout=max(end - time.monotonic(), 0.0)):
            raise ClusterUnavailable.of(f"target {alone}", "another look at it hasn't ended", fix="ask again in a moment")
        try:
            return self._placed(key, look, end, fresh)
        finally:
            if turn:
                turn.release()

    def _placed(self, key: Hashable, look: Callable[[], T], end: float, fresh: float) -> T:
        if not self._places.acquire(timeout=max(end - time.monotonic(), 0.0)):
            raise ClusterUnavailable.of("look", f"{self.at_once} others are under way", fix="ask again in a moment")
        try:
            with deadline.until(end):
                found = look()
        except ClusterUnavailable as error:
            self._keep(key, _own(error), FAILED)
            raise
        finally:
            self._places.release()
        if fresh:
            self._keep(key, found, fresh)
        return found

    # --- what is kept
    def _keep(self, key: Hashable, found: object, seconds: float) -> None:
        with self._changed:
            self._kept[key] = self.clock() + seconds, found
            self._kept.move_to_end(key)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            starts, self._forgets = not self._forgets, True
            self._changed.notify()
        if starts:
            try:
                threading.Thread(target=self._forget_old, name="forget", daemon=True).start()
            except RuntimeError:  # there is no thread for it: the next answer finds one
                self._forgets = False

    def _forget_old(self) -> None:
        """Drop each answer once it is old; ends with the last one."""
        with self._changed:
            while self._kept:
                now = self.clock()
                for key in [each for each, (end, _) in self._kept.items() if end <= now]:
                    del self._kept[key]
                if self._kept:
                    self._changed.wait(min(min(end for end, _ in self._kept.values()) - now, _LONGEST))
            self._forgets = False


def _own(error: AnnealError) -> AnnealError:
    """Return an error of its own: several threads raise it, and its trace would keep what the look has seen."""
    return type(error)(*error.problems)
