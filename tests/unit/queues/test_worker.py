"""The worker's loop: what it runs, what a result arms, and how each end is logged."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from handler.model.errors import Problem, RefNotFound
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.queues.outbox import Outbox
from handler.worker import Run, Worker
from tests.fakes.door import door_settings
from tests.fakes.parts import parts_of

PATIENCE = 10.0


@contextmanager
def working(path: Path, run: Run) -> Iterator[Outbox]:
    """A worker that serves, and the outbox that reaches it."""
    worker = Worker(door_settings(), parts_of(run))
    thread = threading.Thread(target=worker.serve, args=(path,))
    thread.start()
    outbox = Outbox(path)
    try:
        yield outbox
    finally:
        outbox.close(PATIENCE)
        worker.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


class Seen:
    """Jobs in the order they were run."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self._changed = threading.Condition()

    def add(self, job: Job) -> None:
        with self._changed:
            self.jobs.append(job)
            self._changed.notify_all()

    def wait(self, target: str, trigger: str, count: int = 1) -> None:
        def reached() -> bool:
            return sum((job.target, job.trigger) == (target, trigger) for job in self.jobs) >= count

        with self._changed:
            assert self._changed.wait_for(reached, PATIENCE), self.jobs


def test_every_target_gets_its_start_up_tick_and_a_due_retry(tmp_path: Path) -> None:
    seen = Seen()

    def run(job: Job, _stop: threading.Event) -> Result:
        seen.add(job)
        first = job.target == "infra" and len([one for one in seen.jobs if one.target == "infra"]) == 1
        return Result(job.target, Outcome.FAILED if first else Outcome.UNCHANGED, next_try=time.time() + 0.1 if first else 0.0)

    with working(tmp_path / "s", run):
        for target in ("shop-prod", "shop-dev", "shop-fixed"):
            seen.wait(target, "tick")
        seen.wait("infra", "tick", count=2)


def test_jobs_from_the_door_run_and_those_for_unknown_targets_do_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()

    def run(job: Job, _stop: threading.Event) -> Result:
        seen.add(job)
        return Result(job.target, Outcome.UNCHANGED)

    with working(tmp_path / "s", run) as outbox:
        outbox.put(Job("nobody", "push"))
        outbox.put(Job("infra", "push"))
        seen.wait("infra", "push")
    assert "nobody" not in {job.target for job in seen.jobs}
    assert "a job for an unknown target was dropped" in caplog.messages


def test_a_run_that_fails_is_a_line_that_says_who_must_act(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    seen = Seen()

    def run(job: Job, _stop: threading.Event) -> Result:
        seen.add(job)
        if job.trigger == "push":
            raise RefNotFound(Problem("branch main", "is gone"))
        if job.trigger == "replay":
            raise KeyError("inside")
        return Result(job.target, Outcome.UNCHANGED)

    with working(tmp_path / "s", run) as outbox:
        outbox.put(Job("infra", "push"))
        seen.wait("infra", "push")
        run_id = outbox.put(Job("infra", "replay", actor="ada"))
        seen.wait("infra", "replay")
        outbox.put(Job("infra", "oneoff"))
        seen.wait("infra", "oneoff")
    lines = [record.__dict__["fields"] for record in caplog.records if record.message == "run"]
    failed = {line["trigger"]: line for line in lines if line["outcome"] == Outcome.FAILED}
    assert (failed["push"]["code"], failed["push"]["who"], failed["push"]["problems"]) == (
        "ref-not-found",
        "author",
        ["branch main: is gone"],
    )
    assert (failed["replay"]["code"], failed["replay"]["actor"], failed["replay"]["run"]) == ("internal", "ada", run_id)
    assert len(lines) == len(seen.jobs), "one line a run"


def test_stopping_sets_the_event_that_runs_watch(tmp_path: Path) -> None:
    seen, released = Seen(), threading.Event()

    def run(job: Job, stop: threading.Event) -> Result:
        seen.add(job)
        if job.trigger == "push":
            assert stop.wait(PATIENCE)
            released.set()
        return Result(job.target, Outcome.UNCHANGED)

    with working(tmp_path / "s", run) as outbox:
        outbox.put(Job("infra", "push"))
        seen.wait("infra", "push")
    assert released.is_set()
