"""Counts a shared queue's dead letters once a minute, for an alert: nothing else shows them to an operator who doesn't look.

Law: it only counts. Where that isn't allowed, or there is no queue for them, it is logged once, and no number is shown.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from handler.model.errors import AnnealError
from handler.queues.dead_letters import DeadLetters
from handler.queues.sqs import SqsQueue

_LOG = logging.getLogger("anneal.queue")
EVERY = 60.0  # seconds between two counts
Report = Callable[[str, int], None]  # takes the name of the queue of dead letters, and how many it has


class DeadLetterCount:
    """Counts from `start` to `stop`, on a thread of its own."""

    def __init__(self, queue: SqsQueue, report: Report) -> None:
        self._queue = queue
        self._report = report
        self._letters: DeadLetters | None = None
        self._said = ""
        self._stop = threading.Event()

    def start(self) -> None:
        """Count now, and then each minute."""
        threading.Thread(target=self._work, name="dead letters", daemon=True).start()

    def stop(self) -> None:
        """Count no more."""
        self._stop.set()

    def count(self) -> None:
        """Count once; what keeps it from being counted is said once."""
        try:
            self._letters = self._letters or DeadLetters(self._queue)
            self._report(self._letters.name, self._letters.count())
        except AnnealError as error:
            if str(error) != self._said:
                _LOG.warning("dead letters aren't counted", extra={"fields": {"code": error.code, "seen": str(error)}})
            self._said = str(error)
        else:
            self._said = ""

    def _work(self) -> None:
        while True:
            self.count()
            if self._stop.wait(EVERY):
                return
