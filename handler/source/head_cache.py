"""The heads of a host's refs, asked once for all callers that accept an answer's age; errors aren't kept."""

from __future__ import annotations

import time
from collections.abc import Callable

from handler.config.git_settings import Revision
from handler.model.errors import GitUnavailable
from handler.model.refs import Head
from handler.model.singleflight import SingleFlight

MISTAKEN = "another run asked the host for it, and failed unexpectedly; see the log"


class HeadCache:
    """The last answer to each question, or the question under way. Safe to share between threads."""

    def __init__(self, ask: Callable[[Revision], Head], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._flights: SingleFlight[tuple[str, str], Head] = SingleFlight(clock, kept=True)

    def get(self, revision: Revision, since: float) -> Head:
        """Return what a revision names, by an answer of monotonic second `since` or later; infinity: ask now. Raises AnnealError."""
        key = revision.ref, revision.semver
        return self._flights.do(key, lambda: self._ask(revision), lambda: GitUnavailable.of(str(revision), MISTAKEN), since)
