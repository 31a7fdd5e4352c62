"""What becomes of requests when the worker stops, none of which goes silently or is shown as ended; and when the git host lags."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.queues import message
from handler.queues.inbox import Closed
from handler.queues.outbox import Outbox
from handler.queues.pending import Work
from handler.web.__main__ import Door
from handler.worker.worker import Worker
from tests.fakes.signed_webhooks import door_settings
from tests.fakes.worker_parts import parts_of
from tests.patience import PATIENCE
from tests.unit.worker.serving import serving

APPROVAL = Job("infra", "replay", approve="h1", actor="boss")


def told(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [record.__dict__["fields"] for record in caplog.records if record.message == message]


def line(run: str, job: Job) -> dict[str, Any]:
    return {"target": job.target, "run": run, "requests": (), "actor": job.actor, "acts": job.acts}


def test_after_stop_no_run_begins_and_named_requests_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ran: list[Job] = []
    begun = threading.Event()

    def run(job: Job, stop: threading.Event, _meanwhile: object = None) -> Result:
        if job.trigger == "push":
            ran.append(job)
            begun.set()
            assert stop.wait(PATIENCE)
        elif job.trigger == "replay":
            ran.append(job)
        return Result(job.target, Outcome.UNCHANGED, run=job.run)

    with serving(Worker(door_settings(), parts_of(run)), tmp_path / "s") as worker:
        worker._accept(Work.of(Job("infra", "push", hint="a")))
        assert begun.wait(PATIENCE)
        asked = [APPROVAL, Job("infra", "replay", commit="c", actor="ci")]
        runs = [worker._accept(Work.of(job))["run"] for job in asked]
        worker._accept(Work.of(Job("infra", "push", hint="b")))
    assert [job.hint for job in ran] == ["a"]
    lines = told(caplog, "a request ends with the worker")
    assert sorted(lines, key=str) == sorted(map(line, runs, asked), key=str)


@pytest.mark.slow
def test_a_named_run_that_the_stop_cut_short_isnt_told_as_ended(caplog: pytest.LogCaptureFixture) -> None:
    def run(job: Job, _stop: threading.Event, _meanwhile: object = None) -> Result:
        worker.stop()
        return Result(job.target, Outcome.BUSY, run=job.run)

    named, push = Work.of(APPROVAL), Work.of(Job("infra", "push"))
    for work, status in ((named, "queued"), (push, "ended")):
        worker = Worker(door_settings(), parts_of(run))
        worker._work(work)
        entry = worker.answers.runs.find(work.run)
        assert entry
        assert entry.status == status
    assert told(caplog, "a request ends with the worker") == [line(named.run, APPROVAL)]


@pytest.mark.slow
def test_a_worker_that_stops_takes_nothing_and_doesnt_say_that_it_did() -> None:
    worker = Worker(door_settings(), parts_of(lambda job, _stop, _meanwhile: Result(job.target, Outcome.UNCHANGED)))
    worker.stop()
    again = {"ask": "again", "work": message.document(Work.of(APPROVAL)), "was": "infra.0"}
    with pytest.raises(Closed):
        worker._offered(Work.of(APPROVAL))
    with pytest.raises(Closed):
        worker.answers.answer(again)
    assert worker._queue.waiting == 0


@pytest.mark.slow
def test_requests_that_no_worker_has_are_logged_when_the_web_process_ends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    outbox = Outbox(tmp_path / "s")
    asked = [APPROVAL, Job("infra", "replay", unpin=True, actor="ci")]
    runs = [outbox.put(job) for job in asked]
    outbox.put(Job("shop-prod", "push"))
    door = Door({"ANNEAL_LISTEN": "0"})
    door._outbox = outbox
    door._exit(None, None)
    assert told(caplog, "a request ends with the web process: no worker has it") == list(map(line, runs, asked))
    (fields,) = told(caplog, "not all that arrived was handed to a worker; its first look finds what was pushed")
    assert fields == {"targets": 2}


def lagging(job: Job, _stop: threading.Event, _meanwhile: object = None) -> Result:
    return Result(job.target, Outcome.LAGGING, run=job.run)


def test_a_late_push_that_comes_due_doesnt_hide_the_newer_one_that_waits() -> None:
    worker, late, newer = (
        Worker(door_settings(), parts_of(lagging)),
        *(Work.of(Job("infra", "push", hint=hint)) for hint in ("late", "newer")),
    )
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
    worker, first, second = (
        Worker(door_settings(), parts_of(lagging)),
        *(Work.of(Job("infra", "push", hint=hint)) for hint in ("first", "second")),
    )
    worker._work(first)
    worker._work(second)
    assert list(worker.answers.runs._entries) == [first.run]
    (both,) = worker._queue.due(time.monotonic())
    assert (both.job.hint, both.runs, both.job.looks) == ("second", (first.run, second.run), 1)
