"""Single flight: concurrent callers of one question share one attempt to answer it, and its end."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

from handler.model.errors import AnnealError

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SingleFlight(Generic[K, T]):
    """The questions under way, one a key. Safe to share between threads. `kept`: answers stay, for callers that accept their age."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, kept: bool = False) -> None:
        self._clock = clock
        self._kept = kept
        self._flights: dict[K, tuple[float, Future[T]]] = {}
        self._lock = threading.Lock()

    def do(self, key: K, ask: Callable[[], T], unexpected: Callable[[], AnnealError], since: float = -math.inf) -> T:
        """Return an answer to what was asked at `since` or later, or ask now. `unexpected`: what another's mistake is to this caller."""
        flight, mine = self._join(key, since)
        if mine:
            self._ask(key, flight, ask)
        elif error := flight.exception():
            raise type(error)(*error.problems) if isinstance(error, AnnealError) else unexpected()
        return flight.result()

    def start(self, key: K, ask: Callable[[], T], thread: str) -> Future[T]:
        """Return the question under way, asked on a daemon thread of that name; the caller bounds its own wait."""
        flight, mine = self._join(key, -math.inf)
        if mine:
            try:
                threading.Thread(target=self._ask, args=(key, flight, ask), name=thread, daemon=True).start()
            except RuntimeError as error:  # there is no thread for it
                self._remove(key, flight)
                flight.set_exception(error)
        return flight

    def _join(self, key: K, since: float) -> tuple[Future[T], bool]:
        with self._lock:
            sent, flight = self._flights.get(key, (-math.inf, None))
            if flight is not None and sent >= since:
                return flight, False
            flight = Future()
            self._flights[key] = self._clock(), flight
            return flight, True

    def _ask(self, key: K, flight: Future[T], ask: Callable[[], T]) -> None:
        """Answer a flight; its entry is removed before anything that waits goes on."""
        try:
            answer = ask()
        except BaseException as error:  # noqa: BLE001 - each caller raises it
            self._remove(key, flight)
            flight.set_exception(error)
        else:
            if not self._kept:
                self._remove(key, flight)
            flight.set_result(answer)

    def _remove(self, key: K, flight: Future[T]) -> None:
        with self._lock:
            if key in self._flights and self._flights[key][1] is flight:
                del self._flights[key]
