"""What the git host didn't show comes back as what was asked first, and the worker remembers one run of it."""

from __future__ import annotations

import threading
import time

from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.queues.pending import Work
from handler.worker.worker import Worker
from tests.fakes.signed_webhooks import door_settings
from tests.fakes.worker_parts import parts_of


def lagging(job: Job, _stop: threading.Event, _meanwhile: object = None) -> Result:
    return Result(job.target, Outcome.LAGGING, run=job.run)


def push(hint: str) -> Work:
    return Work.of(Job("infra", "push", hint=hint))


def test_a_late_push_that_comes_due_doesnt_hide_the_newer_one_that_waits() -> None:
    worker, late, newer = Worker(door_settings(), parts_of(lagging)), push("late"), push("newer")
    worker._accept(newer)
    worker._work(late)
    worker._queue.accept_due(time.monotonic())
    waiting = worker._queue.take()
    assert waiting
    assert (waiting.job.hint, waiting.runs) == ("newer", (late.run, newer.run))
    for run in waiting.runs:
        entry = worker.answers.runs.find(run)
        assert entry
        assert (entry.run, entry.status) == (late.run, "queued")
    assert list(worker.answers.runs._entries) == [late.run]


def test_two_late_pushes_are_one_run() -> None:
    worker, first, second = Worker(door_settings(), parts_of(lagging)), push("first"), push("second")
    worker._work(first)
    worker._work(second)
    assert list(worker.answers.runs._entries) == [first.run]
    (both,) = worker._queue.due(time.monotonic())
    assert (both.job.hint, both.runs) == ("second", (first.run, second.run))


def test_what_is_asked_by_name_leaves_a_late_push_where_it_is() -> None:
    worker, late = Worker(door_settings(), parts_of(lagging)), push("late")
    worker._work(late)
    worker._accept(Work.of(Job("infra", "replay", approve="h1", actor="boss")))
    worker._accept(Work.of(Job("infra", "tick")))
    assert [work.job.looks for work in worker._queue.due(time.monotonic())] == [1]
