"""The heads of a host's refs, asked once for all callers that accept an answer's age; errors aren't kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from handler.config.git_settings import Revision
from handler.model.refs import Head
from handler.model.singleflight import Flight


class HeadCache:
    """The last answer to each question, or the question under way. Safe to share between threads."""

    def __init__(self, ask: Callable[[Revision], Head], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._flights: dict[tuple[str, str], Flight[Head]] = {}
        self._lock = threading.Lock()

    def get(self, revision: Revision, since: float) -> Head:
        """Return what a revision names, by an answer of monotonic second `since` or later; infinity: ask now. Raises AnnealError."""
        key = revision.ref, revision.semver
        with self._lock:
            flight = self._flights.get(key)
            mine = flight is None or flight.sent < since
            if flight is None or mine:
                flight = self._flights[key] = Flight(self._clock())
        return self._fly(key, flight, revision) if mine else flight.wait(str(revision))

    def _fly(self, key: tuple[str, str], flight: Flight[Head], revision: Revision) -> Head:
        try:
            return flight.fly(lambda: self._ask(revision))
        finally:
            if flight.answer is None:
                with self._lock:
                    if self._flights.get(key) is flight:
                        del self._flights[key]
            flight.landed.set()
