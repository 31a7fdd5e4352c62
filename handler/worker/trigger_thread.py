"""A trigger of a program's own asks for runs here, in the worker process of `anneal run --trigger NAME`.

Law: no mistake of it ends the process, or the trigger: it is logged, and the trigger is begun again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from handler.model.backoff import Backoff
from handler.model.event import Job
from handler.model.run_trigger import AskingWatch

_LOG = logging.getLogger("anneal.trigger")
_PAUSES = Backoff(1.0, 60.0)  # until one that ended is begun again; from the start once it has asked for a run


@dataclass(frozen=True, slots=True)
class NamedTrigger:
    """A trigger by its name, which reports call its runs by."""

    name: str
    watch: AskingWatch


class TriggerThread:
    """Has a trigger ask from `start` to `stop`. `take`: takes the jobs."""

    def __init__(self, trigger: NamedTrigger, targets: tuple[str, ...], take: Callable[[Job], None], pauses: Backoff = _PAUSES) -> None:
        self._trigger, self._targets, self._take, self._pauses = trigger, targets, take, pauses
        self._ends = 0
        self._stop = threading.Event()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._work, name="trigger", daemon=True).start()

    def stop(self) -> None:
        """Ask it to end; nothing is waited for."""
        self._stop.set()

    def _work(self) -> None:
        fields = {"trigger": self._trigger.name}
        while not self._stop.is_set():
            self._ends += 1
            try:
                self._trigger.watch(self._targets, self._ask, self._stop)
            except BaseException:  # noqa: BLE001 - it is not ours: what asyncio cancels is no Exception
                _LOG.exception("a trigger has failed, and is begun again", extra={"fields": fields})
            else:
                if not self._stop.is_set():
                    _LOG.warning("a trigger has ended, and is begun again", extra={"fields": fields})
            self._stop.wait(self._pauses.after(self._ends))

    def _ask(self, name: str) -> None:
        if name not in self._targets:
            raise ValueError(f"{name!r} is no target of this process; its targets are {', '.join(self._targets)}")
        self._ends = 0
        self._take(Job(name, self._trigger.name, asked=time.monotonic()))
