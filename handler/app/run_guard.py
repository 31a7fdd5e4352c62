"""Guards each run, and announces its end: no exception of it ends another run."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Concatenate, ParamSpec

from handler.model.errors import AnnealError, Problem
from handler.model.event import Job
from handler.model.failure_trace import raised
from handler.model.pull_request import is_pull_request
from handler.model.queue_view import QueueView
from handler.model.result import INTERNAL, Outcome, Result
from handler.model.run_event import Announce, RunEnded

_LOG = logging.getLogger("anneal.run")
Run = Callable[[Job, threading.Event, QueueView], Result]
"""Runs a job; once the event is set, it finishes or releases its Lease soon. While it waits it looks at what goes on around it."""
P = ParamSpec("P")


def guarded(run: Callable[Concatenate[Job, P], Result]) -> Callable[Concatenate[Job, P], Result]:
    """Return a run that never raises: one that fails unexpectedly ends alone, and other targets and the next run of this one go on."""

    def whole(job: Job, /, *more: P.args, **named: P.kwargs) -> Result:
        try:
            return run(job, *more, **named)
        except AnnealError as error:
            return _failed(job, error.problems, error.who, error.code)
        except Exception as error:  # noqa: BLE001 - one run's mistake may not end the others
            _LOG.exception("a run ended unexpectedly", extra={"fields": {"target": job.target}})
            return _failed(job, (Problem(job.target, f"internal error: {raised(error)}"),), "operator", INTERNAL)

    return whole


def announced(run: Callable[Concatenate[Job, P], Result], announce: Announce) -> Callable[Concatenate[Job, P], Result]:
    """Return a run whose end is announced before it returns; one that raises has none, nor has a plan of a pull request: it is no run."""

    def whole(job: Job, /, *more: P.args, **named: P.kwargs) -> Result:
        since = time.monotonic()
        result = run(job, *more, **named)
        if not is_pull_request(job.target):
            announce(RunEnded.of(job, result, time.monotonic() - since))
        return result

    return whole


def _failed(job: Job, problems: tuple[Problem, ...], who: str, code: str) -> Result:
    return Result(job.target, Outcome.FAILED, trigger=job.cause, problems=problems, who=who, code=code, run=job.run)
