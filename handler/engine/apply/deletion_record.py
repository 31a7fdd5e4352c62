"""Records the deletions that a run waits for: phase `pruning`, each object and what holds it.

Law: it is written when it changes, and not for what goes soon (`wait_deleted`); once all are gone the record stands as before. A killed run
leaves it. A write that fails ends no run: the fence decides whether the run goes on.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from handler.engine.run import transitions
from handler.engine.run.context import RunContext
from handler.model.errors import AnnealError, Problem
from handler.state.record import RunStatus, State
from handler.state.run_history import PRUNING


@dataclass(slots=True)
class Lingering:
    """What one run waits for, on several threads at once maybe."""

    run: RunContext
    _left: dict[int, tuple[Problem, ...]] = field(default_factory=dict)
    _before: RunStatus | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, left: Sequence[Problem]) -> None:
        """Record what the wait of this thread waits for; nothing: all of it is gone."""
        with self._lock:
            self._left[threading.get_ident()] = tuple(left)
        with contextlib.suppress(AnnealError):
            self.run.record(self._told)

    def _told(self, state: State) -> State:
        """Return the record with what is left as it is written."""
        with self._lock:
            lines = [self.run.mask(str(problem)) for each in self._left.values() for problem in each]
            if self._before is None or state.status.phase != PRUNING:
                self._before = state.status
            return transitions.lingering(state, lines, self._before, self.run.clock())
