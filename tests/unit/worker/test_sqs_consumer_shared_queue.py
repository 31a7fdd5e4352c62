"""A door that fills a shared queue, and workers that take from it: the real ones, on moto, with a run of the test's own."""

from __future__ import annotations

import json
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from handler import wsgi
from handler.app import log
from handler.app.run_guard import Run
from handler.model.event import Delivery, Job
from handler.model.result import Outcome, Result
from handler.queues import sqs
from handler.queues.sqs import SqsQueue
from handler.web.bootstrap import EVENTS
from handler.worker import sqs_consumer
from handler.worker.worker import Worker
from infra.moto import Moto
from tests.fakes.signed_webhooks import SECRETS, SHOP, door_settings, github_headers, github_push
from tests.fakes.worker_parts import parts_of
from tests.patience import PATIENCE
from tests.unit.worker.serving import serving

SHA = "a" * 40


@pytest.fixture
def queue(aws: Moto, monkeypatch: pytest.MonkeyPatch) -> SqsQueue:
    monkeypatch.setattr(sqs_consumer, "WAIT", 1.0)
    monkeypatch.setattr(sqs, "PATIENCE", PATIENCE)  # a busy machine's moto may take longer than a git host waits
    url = boto3.client("sqs", **aws.client).create_queue(QueueName="anneal.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    return SqsQueue(url, longest_wait=1)


def working(path: Path, queue: SqsQueue, run: Run) -> AbstractContextManager[Worker]:
    return serving(Worker(door_settings(), replace(parts_of(run), queue=queue)), path)


class Ran:
    """Ends runs as scripted, in turn by target; ticks find nothing new."""

    def __init__(self, *ends: Result) -> None:
        self.ends = list(ends)
        self.jobs: list[Job] = []
        self.changed = threading.Condition()

    def __call__(self, job: Job, _stop: threading.Event, _meanwhile: object = None) -> Result:
        if not job.deliveries and not job.hint:
            return Result(job.target, Outcome.UNCHANGED, recorded=True)
        with self.changed:
            self.jobs.append(job)
            self.changed.notify_all()
            return self.ends.pop(0) if self.ends else Result(job.target, Outcome.APPLIED, recorded=True)

    def wait(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.jobs) >= count, PATIENCE), self.jobs


def push(target: str, delivery: str = "d1") -> Job:
    return Job(target, "push", hint=SHA, deliveries=(Delivery(delivery, "github", "refs/heads/main", SHA, "ada", "t"),))


def run_of(worker: Worker, request: str) -> str:
    """Return the run that a request was in: its own, or the worker's first tick, if that was waiting when the request came."""
    found = worker.answers.runs.find(request)
    assert found
    return found.run


def left(queue: SqsQueue) -> int:
    """Return how many messages there are, in flight or not."""
    found = queue.attributes("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    return sum(map(int, found.values()))


@pytest.mark.slow
def test_a_late_push_keeps_its_message_until_it_has_ended(queue: SqsQueue, tmp_path: Path) -> None:
    late = Result("infra", Outcome.LAGGING, next_try=time.time())
    ran = Ran(late, late)
    queue.put(push("infra"))
    with working(tmp_path / "s", queue, ran):
        ran.wait(3)
    assert [job.looks for job in ran.jobs] == [0, 1, 2]
    assert left(queue) == 0


@pytest.mark.slow
def test_messages_of_a_stopping_worker_go_to_the_next_one(queue: SqsQueue, tmp_path: Path) -> None:
    begun = threading.Event()

    def cut(job: Job, stop: threading.Event, _meanwhile: object = None) -> Result:
        if not job.hint:
            return Result(job.target, Outcome.UNCHANGED, recorded=True)
        begun.set()
        assert stop.wait(PATIENCE)
        return Result(job.target, Outcome.BUSY, code="stopping")

    queue.put(push("infra"))
    with working(tmp_path / "s", queue, cut):
        assert begun.wait(PATIENCE)
    ran = Ran()
    with working(tmp_path / "t", queue, ran):
        ran.wait(1)
    assert left(queue) == 0


@pytest.mark.slow
def test_a_look_that_a_stopping_worker_would_have_made_is_left_to_the_next_one(queue: SqsQueue, tmp_path: Path) -> None:
    again = Job("infra", "push", hint=SHA, looks=1)
    first = Ran(Result("infra", Outcome.APPLIED, recorded=True, again=again, again_at=time.time() + 1000))
    queue.put(push("infra"))
    with working(tmp_path / "s", queue, first):
        first.wait(1)
    second = Ran()
    with working(tmp_path / "t", queue, second):
        second.wait(1)
    assert second.jobs[0].looks == 1


# --- the door
CONFIG: dict[str, Any] = {
    "apiVersion": "anneal.dev/v1alpha1",
    "kind": "Config",
    "webhooks": {"github": {"secrets": [{"env": "GITHUB"}]}},
    "targets": [{"name": name, "repository": {"url": SHOP}, "namespaces": ["shop"]} for name in ("shop-prod", "shop-dev")],
}


@pytest.fixture
def environ(queue: SqsQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(log, "configure", lambda *_, **__: None)  # this process's log is pytest's
    path = tmp_path / "anneal.yaml"
    path.write_text(json.dumps(CONFIG))
    return {**SECRETS, "ANNEAL_CONFIG": str(path), "ANNEAL_SOCKET": str(tmp_path / "none"), "ANNEAL_QUEUE_URL": queue.url}


@pytest.mark.slow
def test_the_door_fills_the_queue_and_a_worker_elsewhere_runs_it(queue: SqsQueue, environ: dict[str, str], tmp_path: Path) -> None:
    app, outbox = wsgi.application(environ)
    body = github_push()
    response = app.test_client().post("/webhooks/github", data=body, headers=github_headers(body))
    assert response.status_code == 202
    told = {row["target"]: row["run"] for row in response.get_json()["matched"]}
    ran = Ran()
    with working(tmp_path / "s", queue, ran) as worker:
        ran.wait(2)
    assert {job.target: job.run for job in ran.jobs} == {target: run_of(worker, run) for target, run in told.items()}
    assert (outbox.waiting, left(queue)) == (0, 0)
    outbox.close()


@pytest.mark.slow
def test_a_queue_that_takes_nothing_is_answered_503_and_logged(environ: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    app, outbox = wsgi.application({**environ, "ANNEAL_QUEUE_URL": environ["ANNEAL_QUEUE_URL"].replace("anneal.fifo", "gone.fifo")})
    body = github_push()
    response = app.test_client().post("/webhooks/github", data=body, headers=github_headers(body))
    assert (response.status_code, response.get_json()["code"]) == (503, "queue-unavailable")
    assert "queue gone.fifo: doesn't exist" in response.get_json()["error"]
    assert app.extensions[EVENTS].drained(PATIENCE)
    (told,) = [record.__dict__["fields"] for record in caplog.records if record.message == "delivery not taken"]
    assert "doesn't exist" in told["seen"]
    outbox.close()
