"""The worker's loop: what it runs, what a result arms, and how each end is logged."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from handler.app.run_guard import Run
from handler.model.errors import Problem, RefNotFound
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.queues.outbox import Outbox
from handler.queues.pending import Work
from handler.worker.worker import Worker
from tests.fakes.signed_webhooks import door_settings
from tests.fakes.worker_parts import parts_of
from tests.patience import PATIENCE, until
from tests.unit.worker.serving import serving


@contextmanager
def working(path: Path, run: Run) -> Iterator[Outbox]:
    """A worker that serves, and the outbox that reaches it."""
    with serving(Worker(door_settings(), parts_of(run)), path):
        outbox = Outbox(path)
        try:
            yield outbox
        finally:
            outbox.close(PATIENCE)


class Seen:
    """Jobs in the order they were run."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self._changed = threading.Condition()

    def unchanged(self, job: Job, _stop: threading.Event, _meanwhile: object = None) -> Result:
        """A run that finds nothing to do."""
        self.add(job)
        return Result(job.target, Outcome.UNCHANGED)

    def add(self, job: Job) -> None:
        with self._changed:
            self.jobs.append(job)
            self._changed.notify_all()

    def wait(self, target: str, trigger: str, count: int = 1) -> None:
        def reached() -> bool:
            return sum((job.target, job.trigger) == (target, trigger) for job in self.jobs) >= count

        with self._changed:
            assert self._changed.wait_for(reached, PATIENCE), self.jobs


def test_every_target_gets_its_start_up_tick_and_a_due_retry_which_no_refused_request_puts_off(tmp_path: Path) -> None:
    seen = Seen()

    def run(job: Job, _stop: threading.Event, _meanwhile: object = None) -> Result:
        seen.add(job)
        if job.target != "infra":
            return Result(job.target, Outcome.UNCHANGED)
        return Result(job.target, Outcome.REFUSED) if job.commit else Result(job.target, Outcome.FAILED, next_try=time.time() + 0.5)

    with working(tmp_path / "s", run) as outbox:
        for target in ("shop-prod", "shop-dev", "shop-fixed", "infra"):
            seen.wait(target, "tick")
        outbox.put(Job("infra", "replay", commit="0" * 40))
        seen.wait("infra", "replay")
        seen.wait("infra", "tick", count=2)


def test_jobs_from_the_door_run_and_those_for_unknown_targets_do_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    with working(tmp_path / "s", seen.unchanged) as outbox:
        outbox.put(Job("nobody", "push"))
        outbox.put(Job("infra", "push"))
        seen.wait("infra", "push")
    assert "nobody" not in {job.target for job in seen.jobs}
    assert "a job for an unknown target was dropped" in caplog.messages


def test_a_run_that_fails_is_a_line_that_says_who_must_act(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    seen = Seen()

    def run(job: Job, _stop: threading.Event, _meanwhile: object = None) -> Result:
        seen.add(job)
        if job.trigger == "push":
            raise RefNotFound(Problem("branch main", "is gone"))
        if job.trigger == "replay":
            raise KeyError("inside")
        return Result(job.target, Outcome.UNCHANGED)

    with working(tmp_path / "s", run) as outbox:
        seen.wait("infra", "tick")  # else it might wait when the others come, and give them its id
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

    def run(job: Job, stop: threading.Event, _meanwhile: object = None) -> Result:
        seen.add(job)
        if job.trigger == "push":
            assert stop.wait(PATIENCE)
            released.set()
        return Result(job.target, Outcome.UNCHANGED)

    with working(tmp_path / "s", run) as outbox:
        outbox.put(Job("infra", "push"))
        seen.wait("infra", "push")
    assert released.is_set()


@pytest.mark.slow
def test_a_push_that_the_host_does_not_show_comes_back_without_a_thread_and_under_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six such pushes on four threads hold up no other: the seventh target runs at once."""
    settings = door_settings()
    settings = replace(settings, targets=tuple(replace(settings.targets[0], name=f"t{number}") for number in range(7)))
    seen, ticked, later, shown = Seen(), Seen(), 3600.0, threading.Event()

    def run(job: Job, stop: threading.Event, _meanwhile: object = None) -> Result:
        (seen if job.trigger == "push" else ticked).add(job)
        if job.hint == "late" and not shown.is_set():
            return Result(job.target, Outcome.LAGGING, run=job.run, next_try=time.time() + later)
        return Result(job.target, Outcome.APPLIED, run=job.run)

    with serving(Worker(settings, parts_of(run, settings)), tmp_path / "worker.sock") as worker:
        for number in range(7):
            ticked.wait(f"t{number}", "tick")  # else one might take a push in, which came back under its id
        ids = [worker._accept(Work.of(Job(f"t{number}", "push", hint="late")))["run"] for number in range(6)]
        for number in range(6):
            seen.wait(f"t{number}", "push")
        worker._accept(Work.of(Job("t6", "push", hint="there")))
        seen.wait("t6", "push")
        until(lambda: all(worker.answers.runs.find(run).status == "queued" for run in ids))  # type: ignore[union-attr]  # it is known
        shown.set()
        worker._accept(Work.of(Job("t0", "push", hint="newer")))
        seen.wait("t0", "push", 2)
        until(lambda: worker.answers.runs.find(ids[0]).status == "ended")  # type: ignore[union-attr]  # it is known
        assert (seen.jobs[-1].run, seen.jobs[-1].hint) == (ids[0], "newer")
        with monkeypatch.context() as patched:
            patched.setattr(worker._queue, "due", lambda now, due=worker._queue.due: due(now + 2 * later))
            until(lambda: all(worker.answers.runs.find(run).status == "ended" for run in ids))  # type: ignore[union-attr]  # it is known
        assert {(job.target, job.looks) for job in seen.jobs if job.looks} == {(f"t{number}", 1) for number in range(1, 6)}


def test_a_late_push_left_by_a_run_is_looked_for_under_its_own_run_id(tmp_path: Path) -> None:
    seen = Seen()

    def run(job: Job, stop: threading.Event, _meanwhile: object = None) -> Result:
        seen.add(job)
        if job.hint == "late" and not job.looks:
            return Result(job.target, Outcome.APPLIED, run=job.run, again=replace(job, looks=1), again_at=time.time() + 0.1)
        return Result(job.target, Outcome.APPLIED, run=job.run)

    with serving(Worker(door_settings(), parts_of(run)), tmp_path / "worker.sock") as worker:
        seen.wait("infra", "tick")  # else it might take the push in
        asked = worker._accept(Work.of(Job("infra", "push", hint="late")))["run"]
        seen.wait("infra", "push", 2)
        first, second = (job for job in seen.jobs if job.hint)
        assert (first.run, second.looks, second.asked > first.asked) == (asked, 1, True)
        assert second.run != asked
        until(lambda: worker.answers.runs.find(second.run).status == "ended")  # type: ignore[union-attr]  # it is known
        ended = worker.answers.runs.find(asked)
        assert ended
        assert (ended.status, ended.run, ended.requests) == ("ended", asked, (asked,)), "its request is answered"


@pytest.mark.slow
def test_a_target_suspended_in_the_configuration_gets_no_ticks(tmp_path: Path) -> None:
    settings = door_settings()
    shop = settings.targets[0]
    settings = replace(settings, interval=1.0, targets=(shop, replace(shop, name="paused", suspend=True)))
    seen = Seen()
    with serving(Worker(settings, parts_of(seen.unchanged, settings)), tmp_path / "worker.sock") as worker:
        seen.wait(shop.name, "tick", 2)
        worker._accept(Work.of(Job("paused", "replay")))
        seen.wait("paused", "replay")
    assert {job.trigger for job in seen.jobs if job.target == "paused"} == {"replay"}


def test_freed_memory_goes_back_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = threading.Semaphore(0)
    monkeypatch.setattr("handler.model.malloc.trim", times.release)
    monkeypatch.setattr("handler.worker.worker.TRIMMED", 0.01)
    with working(tmp_path / "s", Seen().unchanged):
        assert times.acquire(timeout=PATIENCE)
        assert times.acquire(timeout=PATIENCE)
