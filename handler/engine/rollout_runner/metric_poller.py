"""Polls metrics while a step is watched: each query on its own thread, so that the judging thread never waits for an answer.

Law: a Prometheus that hangs delays its own check alone. Only the first answer is waited for, while the run may go on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from handler.model.rollout import Moments
from handler.prometheus.client import MetricsUnavailable
from handler.rollout.interfaces import Query

FIRST = 15.0
"""Seconds that the first answer is waited for."""
ABANDONED = 45.0
"""Seconds after which a question without an answer is asked anew: longer than any request may take, unless its bytes drip."""
_LOOK_EVERY = 0.2
Question = tuple[str, str, float, float]


@dataclass(slots=True)
class _Asked:
    since: float = field(default_factory=time.monotonic)
    done: threading.Event = field(default_factory=threading.Event)
    found: Moments | None = None
    error: BaseException | None = None

    def ask(self, ask: Query, question: Question) -> None:
        try:
            self.found = ask(*question)
        except BaseException as error:  # noqa: BLE001 - it is raised again on the thread that asked
            self.error = error
        self.done.set()


@dataclass(slots=True)
class MetricPoller:
    """The questions of one step's checks. `ask`: waits for the answer; `look`: raises if the run may not go on."""

    ask: Query
    look: Callable[[], object]
    _open: dict[Question, _Asked] = field(default_factory=dict)
    _first: bool = True

    @property
    def open(self) -> bool:
        """Whether an answer is awaited."""
        return bool(self._open)

    def __call__(self, url: str, query: str, seconds: float = 0.0, step: float = 0.0) -> Moments | None:
        """Return the answer to a question, None while it's under way; see `rollout.tables.Query`."""
        question = (url, query, seconds, step)
        asked = self._open.get(question) or self._begin(question)
        if self._first:
            self._wait(asked)
        if not asked.done.is_set():
            self._give_up(question, asked)
            return None
        del self._open[question]
        if asked.error is not None:
            raise asked.error
        return asked.found

    def _begin(self, question: Question) -> _Asked:
        asked = self._open[question] = _Asked()
        threading.Thread(target=asked.ask, args=(self.ask, question), name="metrics", daemon=True).start()
        return asked

    def _wait(self, asked: _Asked) -> None:
        self._first = False
        while not asked.done.wait(_LOOK_EVERY) and time.monotonic() - asked.since < FIRST:
            self.look()

    def _give_up(self, question: Question, asked: _Asked) -> None:
        if time.monotonic() - asked.since > ABANDONED:
            del self._open[question]
            raise MetricsUnavailable.of(f"prometheus {question[0]}".rstrip(), f"hasn't answered within {ABANDONED:g} s")
