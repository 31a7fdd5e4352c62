"""One git host's lane: which targets' records are to be looked at, when, by one thread that ends when nothing is due.

Law: at most one look is under way. A host that fails or asks for a pause is left alone, with all of its targets, for growing pauses; what
is due is a name and a time, once a target, so that a host that is down for long costs no memory.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from handler.model.backoff import TRANSIENT
from handler.model.errors import AnnealError, GitUnavailable
from handler.model.host_answer import HostBusy

_LOG = logging.getLogger("anneal.feedback")
IDLE = 30.0
"""Seconds without anything due after which the thread ends."""
NEWS = 20
"""Runs and commits that are news at once; of more the host is asked what it shows."""
SETTLED = 1.0
"""Seconds: what is due later than that isn't waited for."""


@dataclass(frozen=True, slots=True)
class DueLook:
    """A target whose record is to be looked at, not before `at`, in monotonic seconds.

    `news`: of what this process has just heard, so that no host shows anything of it yet: RUN/COMMIT of an end, the commit of what goes on.
    `failures`: in a row.
    """

    target: str
    at: float
    news: frozenset[str] = frozenset()
    failures: int = 0

    def joined(self, older: DueLook) -> DueLook:
        """Return both as one, at the sooner of their times."""
        news = self.news | older.news
        return DueLook(self.target, min(self.at, older.at), news if len(news) <= NEWS else self.news, older.failures)


class StatusLane:
    """The looks for one host. Safe to share between threads."""

    def __init__(self, look: Callable[[DueLook], None]) -> None:
        self._look = look
        self._changed = threading.Condition()
        self._due: dict[str, DueLook] = {}
        self._thread: threading.Thread | None = None
        self._busy = False
        self._failures = 0
        self._rests = -math.inf
        self._logged: dict[str, str] = {}

    def add(self, due: DueLook) -> None:
        """Let a target's record be looked at; of two looks for one target the sooner is made."""
        with self._changed:
            older = self._due.get(due.target)
            self._due[due.target] = due.joined(older) if older else due
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="commit statuses", daemon=True)
                thread.start()
                self._thread = thread
            self._changed.notify_all()

    def settle(self, end: float) -> bool:
        """Wait until nothing is due soon, to `end` (monotonic seconds) at most; return whether that is so."""
        with self._changed:
            done = self._changed.wait_for(lambda: not self._busy and self._wait() > SETTLED, max(end - time.monotonic(), 0.0))
            return done and not self._due

    def _wait(self) -> float:
        """Return the seconds until the next look; infinity: none is due."""
        soonest = min((due.at for due in self._due.values()), default=math.inf)
        return max(soonest, self._rests) - time.monotonic()

    def _work(self) -> None:
        while due := self._taken():
            try:
                self._looked(due)
            except Exception:  # noqa: BLE001 - the next ones are still posted; this one when it is due by its next run
                _LOG.exception("commit statuses aren't posted", extra={"fields": {"target": due.target}})
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _taken(self) -> DueLook | None:
        """Wait for the look that is due first; None: nothing was for long, and the thread ends."""
        with self._changed:
            while (wait := self._wait()) > 0:
                if not self._changed.wait(min(wait, IDLE)) and not self._due:
                    self._thread = None
                    return None
            self._busy = True
            return self._due.pop(min(self._due.values(), key=lambda each: each.at).target)

    def _looked(self, due: DueLook) -> None:
        try:
            self._look(due)
        except GitUnavailable as error:
            self._failures += 1
            pause = error.pause if isinstance(error, HostBusy) else TRANSIENT.after(self._failures)
            with self._changed:
                self._rests = time.monotonic() + pause
            self._later(due, error, 0.0)
        except AnnealError as error:
            self._later(due, error, TRANSIENT.after(due.failures + 1) if error.who == "nobody" else TRANSIENT.longest)
        else:
            self._failures = 0
            self._logged.pop(due.target, None)

    def _later(self, due: DueLook, error: AnnealError, pause: float) -> None:
        """Look again after a pause; log why, once as long as it is for the same reason."""
        self.add(DueLook(due.target, time.monotonic() + pause, failures=due.failures + 1))
        if self._logged.get(due.target) != error.code:
            self._logged[due.target] = error.code
            fields = {"target": due.target, "why": str(error), "code": error.code}
            _LOG.warning("commit statuses wait", extra={"fields": fields})
