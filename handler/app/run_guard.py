"""Guards each run: no exception of it ends another run, and each end is one line of the log."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from handler.model.errors import AnnealError, Problem
from handler.model.event import Job
from handler.model.queue_view import QueueView
from handler.model.result import Outcome, Result
from handler.queues.pending import Work

_LOG = logging.getLogger("anneal.run")
Run = Callable[[Job, threading.Event, QueueView], Result]
"""Runs a job; once the event is set, it finishes or releases its Lease soon. While it waits it looks at what goes on around it."""
P = ParamSpec("P")
INTERNAL = "internal"
"""The code of a run that ended as none of our errors."""


def guarded(run: Callable[Concatenate[Job, P], Result]) -> Callable[Concatenate[Job, P], Result]:
    """Return a run that never raises: one that fails unexpectedly ends alone, and other targets and the next run of this one go on."""

    def whole(job: Job, /, *more: P.args, **named: P.kwargs) -> Result:
        try:
            return run(job, *more, **named)
        except AnnealError as error:
            return _failed(job, error.problems, error.who, error.code)
        except Exception as error:  # noqa: BLE001 - one run's mistake may not end the others
            _LOG.exception("a run ended unexpectedly", extra={"fields": {"target": job.target}})
            return _failed(job, (Problem(job.target, f"{type(error).__name__}: {error}"),), "operator", INTERNAL)

    return whole


def _failed(job: Job, problems: tuple[Problem, ...], who: str, code: str) -> Result:
    return Result(job.target, Outcome.FAILED, trigger=job.cause, problems=problems, who=who, code=code, run=job.run)


def tell(work: Work, result: Result, seconds: float) -> None:
    """Log a run's end; empty fields are left out.

    A failure is logged once: the message only joins the problems, and an unexpected exception has been logged with its trace.
    """
    job = work.job
    problems = [str(problem) for problem in result.problems] if result.code != INTERNAL else []
    fields: dict[str, Any] = {
        "target": result.target,
        "outcome": result.outcome,
        "trigger": job.cause,
        "commit": result.commit,
        "run": work.run,
        "requests": work.runs[1:],
        "actor": job.actor,
        "deliveries": [delivery.id for delivery in job.deliveries],
        "seconds": result.duration or seconds,
        "counts": result.counts,
        "note": "" if result.problems else result.message,
        "problems": problems,
        "who": result.who,
        "code": result.code,
        "next_try": result.next_try,
        "looks_for": result.again.hint if result.again else "",
    }
    level = logging.WARNING if result.outcome in (Outcome.FAILED, Outcome.ROLLED_BACK) else logging.INFO
    _LOG.log(level, "run", extra={"fields": {key: value for key, value in fields.items() if value not in ("", (), [], {}, 0.0)}})
