"""A worker and the plans of pull requests: whose job one is, what its end leaves alone; and ends that a git host doesn't show yet."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from handler.app.commit_statuses.subscriber import CommitStatuses
from handler.app.tick_survey import Report, SurveyTally
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.queues.pending import Work
from handler.queues.sqs import SqsQueue
from handler.worker.worker import Worker
from tests.fakes.signed_webhooks import door_settings
from tests.fakes.sqs_fifo import Fifo
from tests.fakes.worker_parts import asking, parts_of
from tests.patience import PATIENCE, until
from tests.unit.app.shown_commits import Records, owed, shop
from tests.unit.worker.serving import serving

PLAN = Job("infra~12", "pull-request", comments=("6",), actor="ada")


class Asked:
    """What the ends of runs ask of the clock and of the heartbeat."""

    def __init__(self, worker: Worker) -> None:
        self.retries: list[str] = []
        self.looks: list[str] = []
        ticks: Any = SimpleNamespace(ended=lambda target, _next_try: self.retries.append(target))
        heart: Any = SimpleNamespace(looked=self.looks.append)
        worker._ticks, worker._heart = ticks, heart


def ending(outcome: Outcome, **parts: Any) -> Worker:
    """A worker whose runs end so."""
    return Worker(door_settings(), parts_of(lambda job, *_: Result(job.target, outcome, run=job.run, **parts)))


@pytest.mark.parametrize(
    ("target", "trigger", "is_taken"),
    [
        ("infra~12", "pull-request", True),
        ("shop-prod~1", "pull-request", True),
        ("nobody~12", "pull-request", False),
        ("infra-2~12", "pull-request", False),
        ("infra", "push", True),
    ],
)
def test_a_plan_is_its_leads_job_and_of_an_unknown_lead_nobodys(
    caplog: pytest.LogCaptureFixture, target: str, trigger: str, is_taken: bool
) -> None:
    worker, work = ending(Outcome.UNCHANGED), Work.of(Job(target, trigger))
    assert worker._accept(work)["run"] == work.run
    assert (worker._queue.find(work.run) is not None) is is_taken
    assert [record.__dict__["fields"]["target"] for record in caplog.records] == ([] if is_taken else [target])


def test_a_plan_of_a_shared_queue_is_its_leads_job_too() -> None:
    fifo = Fifo()
    sqs = SqsQueue(fifo.url, fifo)
    worker = Worker(door_settings(), replace(parts_of(lambda job, *_: Result(job.target, Outcome.UNCHANGED)), queue=sqs))
    assert worker._consumer
    mine, _ = sqs.put(PLAN), sqs.put(replace(PLAN, target="nobody~12"))
    worker._consumer._received(sqs.receive(10, 0, 60))
    waiting = worker._queue.take()
    assert waiting
    assert (waiting.job.target, waiting.runs, worker._queue.waiting) == (PLAN.target, (mine,), 0)
    assert worker._holds(waiting), "its message is kept from other workers until it ends"


@pytest.mark.parametrize("outcome", [Outcome.UNCHANGED, Outcome.FAILED, Outcome.BUSY, Outcome.WAITING, Outcome.REFUSED])
def test_the_end_of_a_plan_asks_nothing_of_the_clock_and_the_heartbeat(outcome: Outcome) -> None:
    worker = ending(outcome, next_try=time.time() + 3600.0)
    asked, work = Asked(worker), Work.of(PLAN)
    worker._work(work)
    assert (asked.retries, asked.looks, worker._queue.waiting, worker._queue.next_due()) == ([], [], 0, float("inf"))
    entry = worker.answers.runs.find(work.run)
    assert entry
    assert (entry.status, entry.target, entry.trigger, entry.actor) == ("ended", "infra~12", "pull-request", "ada")
    worker._work(Work.of(Job("infra", "push")))
    assert (asked.retries, asked.looks) == (
        [] if outcome is Outcome.REFUSED else ["infra"],
        [] if outcome in (Outcome.BUSY, Outcome.REFUSED) else ["infra"],
    )


def test_a_plan_whose_commit_the_host_does_not_show_yet_comes_back_under_its_id() -> None:
    worker = ending(Outcome.LAGGING)
    asked, work = Asked(worker), Work.of(PLAN)
    worker._work(work)
    entry = worker.answers.runs.find(work.run)
    assert entry
    assert (entry.status, asked.retries, asked.looks) == ("queued", [], [])
    (again,) = worker._queue.due(time.monotonic() + 3600.0)
    assert (again.runs, again.job.target, again.job.comments, again.job.looks) == (work.runs, "infra~12", ("6",), 1)


def test_a_plan_that_the_worker_forgot_is_no_run_of_any_record() -> None:
    ask = asking(ending(Outcome.UNCHANGED))
    assert ask("run", run="infra~12.0123456789ab") == {"run": None}, "no trouble, either"


class Watched(CommitStatuses):
    """Notes whose records it is asked to look at."""

    def __init__(self, records: Records) -> None:
        super().__init__(records.settings, records)
        self.looks: list[str] = []

    def look(self, name: str) -> None:
        self.looks.append(name)
        super().look(name)


@pytest.mark.parametrize("has_statuses", [True, False])
def test_a_summary_that_owes_an_end_is_posted_at_the_start(tmp_path: Path, has_statuses: bool) -> None:
    records, surveyed = Records(shop(), shop("cart")), threading.Event()
    records.put(owed("a" * 40))
    statuses = Watched(records)

    def look(jobs: Sequence[Job], report: Report) -> SurveyTally:
        for job in jobs:
            report(job, Result(job.target, Outcome.UNCHANGED, "a" * 40, owes=job.target == "shop"), "")
        surveyed.set()
        return SurveyTally(len(jobs), len(jobs))

    parts = parts_of(lambda job, *_: Result(job.target, Outcome.UNCHANGED), records.settings)
    with serving(Worker(records.settings, replace(parts, look=look, statuses=statuses if has_statuses else None)), tmp_path / "s"):
        assert surveyed.wait(PATIENCE)
        until(lambda: records.host.said or not has_statuses)
    assert statuses.looks == (["shop"] if has_statuses else [])
    assert records.host.said == ([("a" * 40, "success")] if has_statuses else [])
