"""Polls metrics while a step is watched: each query on its own thread, so that the judging thread never waits for an answer.

Law: a Prometheus that hangs delays its own check alone. Only the first answer is waited for, while the run may go on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

from handler.model.rollout import Moments
from handler.prometheus.client import MetricsUnavailable
from handler.rollout.interfaces import Query

FIRST = 15.0  # seconds that the first answer is waited for
ABANDONED = 45.0
"""Seconds after which a question without an answer is asked anew: longer than any request may take, unless its bytes drip."""
_LOOK_EVERY = 0.2
Question = tuple[str, str, float, float]


@dataclass(slots=True)
class MetricPoller:
    """The questions of one step's checks. `ask`: waits for the answer; `look`: raises if the run may not go on."""

    ask: Query
    look: Callable[[], object]
    _open: dict[Question, tuple[float, Future[Moments | None]]] = field(default_factory=dict)
    _first: bool = True

    @property
    def open(self) -> bool:
        """Whether an answer is awaited."""
        return bool(self._open)

    def __call__(self, url: str, query: str, seconds: float = 0.0, step: float = 0.0) -> Moments | None:
        """Return the answer to a question, None while it's under way; see `Query`."""
        question = (url, query, seconds, step)
        since, answer = self._open.get(question) or self._begin(question)
        if self._first:
            self._first = False
            while not wait([answer], _LOOK_EVERY).done and time.monotonic() - since < FIRST:
                self.look()
        if not answer.done():
            if time.monotonic() - since > ABANDONED:
                del self._open[question]
                raise MetricsUnavailable.of(f"prometheus {url}".rstrip(), f"hasn't answered within {ABANDONED:g} s")
            return None
        del self._open[question]
        return answer.result()

    def _begin(self, question: Question) -> tuple[float, Future[Moments | None]]:
        asked = self._open[question] = time.monotonic(), Future[Moments | None]()
        threading.Thread(target=_answer, args=(self.ask, question, asked[1]), name="metrics", daemon=True).start()
        return asked


def _answer(ask: Query, question: Question, answer: Future[Moments | None]) -> None:
    try:
        answer.set_result(ask(*question))
    except BaseException as error:  # noqa: BLE001 - it is raised again on the thread that asked
        answer.set_exception(error)
