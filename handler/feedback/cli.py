"""The lines of a followed run: what it waits for, and what it has written. `handler.cli` prints them.

Above a terminal's moving line, or in a log. The lines are printed by `keep`, not by the subscriber's thread, so that a wait that doesn't
change is repeated, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from handler.model.plan import Change
from handler.model.run_event import ObjectsWritten, RunPhase

EVERY = 10.0  # seconds between two lines of one wait that changes; its first two come as they are
AGAIN = 15.0
"""Seconds after which the line of an unchanged wait is repeated, where no moving line shows that it goes on."""
MOST = 5  # waits of one target with lines; a Rollout may have a thousand at once
_NAMED = 3  # objects that a line names
_LOOK = 0.5


class RunLines:
    """Prints each wait when it begins, when something else is missing, and now and then.

    `say`: prints a line; `wrote`: prints written changes; `again`: seconds after which an unchanged wait is repeated.
    """

    hears: ClassVar[tuple[type, ...]] = (RunPhase, ObjectsWritten)

    def __init__(
        self,
        say: Callable[[str], None],
        wrote: Callable[[Sequence[Change]], None] = lambda _: None,
        again: float = AGAIN,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say
        self._wrote = wrote
        self._clock = clock
        self._again = again
        self._newest: dict[str, dict[str, str]] = {}
        self._began: dict[tuple[str, str], float] = {}
        self._said: dict[tuple[str, str], tuple[str, float]] = {}
        self._ended = threading.Event()

    def hear(self, event: RunPhase | ObjectsWritten) -> None:
        """Note the waits of a run, or print what it has written."""
        match event:
            case RunPhase():
                self._newest[event.target] = {each.what: _few(each.missing) for each in event.waits[:MOST]}
            case ObjectsWritten():
                self._wrote(event.changes)

    def look(self) -> None:
        """Print what is new."""
        newest = list(self._newest.items())
        now, there = self._clock(), {(target, what): missing for target, waits in newest for what, missing in waits.items()}
        self._said = {key: said for key, said in self._said.items() if key in there}
        self._began = {key: self._began.get(key, now) for key in there}
        for key, missing in there.items():
            before, at = self._said.get(key, (None, 0.0))
            if before is None or now - at >= self._again or (before != missing and (not before or now - at >= EVERY)):
                self._said[key] = missing, now
                lasted = f", {now - self._began[key]:.0f} s so far" if before == missing else ""
                self._say(f"{key[0]} waits for {key[1]}{lasted}" + (f": {missing}" if missing else ""))

    def keep(self) -> None:
        """Print what is new, until `end`."""
        while not self._ended.wait(_LOOK):
            self.look()

    def end(self) -> None:
        """Print no more waits."""
        self._ended.set()


def _few(lines: Sequence[str]) -> str:
    more = [f"and {len(lines) - _NAMED} more"] if len(lines) > _NAMED else []
    return "; ".join([*(" ".join(line.split()) for line in lines[:_NAMED]), *more])
