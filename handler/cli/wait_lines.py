"""What a run under way waits for, and what explains why it isn't there, in plain lines: above a terminal's moving line, or in a log."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from handler.cli.rollout_lines import UNDER_WAY, phase_of
from handler.cli.session import Session, nobody
from handler.state.record import State
from handler.state.run_history import PRUNING

EVERY = 10.0
"""Seconds between two lines of one wait that changes; its first two come as they are."""
AGAIN = 15.0
"""Seconds after which a wait that doesn't change is told again, where no moving line shows that it goes on."""
MOST = 5
"""Waits of one target that are told of; a Rollout may have a thousand at once."""
_NAMED = 3
"""Objects that a line names."""
_LOOK = 0.5

Waits = dict[tuple[str, str], str]


def waits(state: State) -> Waits:
    """Return what a record says is waited for, by target and what it is called, each with what is missing of it in one line."""
    found = {}
    if state.waiting and not state.waiting.over:
        found[state.target, state.waiting.what] = _few(state.status.unhealthy)
    if state.attempt and state.status.phase == PRUNING:
        found[state.target, "deletions"] = _few(state.status.message.splitlines())
    for step in state.rollout.steps if state.rollout and state.attempt else ():
        if phase_of(step) == UNDER_WAY:
            found[state.target, f"{step.group}, {step.step}"] = " ".join(step.message.split())
    return dict(list(found.items())[:MOST])


def _few(lines: Sequence[str]) -> str:
    """Return the first lines as one, and how many more there are."""
    more = [f"and {len(lines) - _NAMED} more"] if len(lines) > _NAMED else []
    return "; ".join([*(" ".join(line.split()) for line in lines[:_NAMED]), *more])


class WaitLines:
    """Tells each wait when it begins, when something else is missing, and now and then.

    `say`: prints a line; `clock`: monotonic seconds; `again`: seconds after which one that doesn't change is told once more.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic, again: float = AGAIN) -> None:
        self._say = say
        self._clock = clock
        self._again = again
        self._newest: dict[str, Waits] = {}
        self._began: dict[tuple[str, str], float] = {}
        self._told: dict[tuple[str, str], tuple[str, float]] = {}
        self._ended = threading.Event()

    def saw(self, state: State) -> None:
        """Take note of a record that a run has just written; any thread may."""
        self._newest[state.target] = waits(state)

    def tell(self) -> None:
        """Say what is new."""
        now, there = self._clock(), {key: missing for found in list(self._newest.values()) for key, missing in found.items()}
        self._told = {key: told for key, told in self._told.items() if key in there}
        self._began = {key: self._began.get(key, now) for key in there}
        for key, missing in there.items():
            before, at = self._told.get(key, (None, 0.0))
            if before is None or now - at >= self._again or (before != missing and (not before or now - at >= EVERY)):
                self._told[key] = missing, now
                lasted = f", {now - self._began[key]:.0f} s so far" if before == missing else ""
                self._say(f"{key[0]} waits for {key[1]}{lasted}" + (f": {missing}" if missing else ""))

    def keep(self) -> None:
        """Say what is new, until `end`."""
        while not self._ended.wait(_LOOK):
            self.tell()

    def end(self) -> None:
        """Say no more."""
        self._ended.set()


@contextlib.contextmanager
def told(session: Session) -> Iterator[None]:
    """Tell on standard error what the runs within this wait for."""
    telling = WaitLines(session.output.note, again=math.inf if session.output.moves else AGAIN)
    thread = threading.Thread(target=telling.keep, name="what is waited for", daemon=True)
    session.seen = telling.saw
    thread.start()
    try:
        yield
    finally:
        session.seen = nobody
        telling.end()
        thread.join()
