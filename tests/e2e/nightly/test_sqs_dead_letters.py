"""Containers on one queue: a door with its worker and a worker alone, on moto's SQS, a real git host and a real API server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest

from handler.model.event import Job
from handler.queues.sqs import SqsEntry, SqsQueue
from infra.moto import Moto
from tests.e2e.conftest import OpenFleet
from tests.e2e.heartbeats import looked_after, watches
from tests.e2e.many_targets import Fleet
from tests.e2e.one_target import STATES
from tests.e2e.serve_process import ROOT, Serving
from tests.in_process import ran
from tests.patience import PATIENCE, until

SIZE, TRIES = 4, 3
BRIEF = "tests.e2e.short_polls"
UNUSED = "a message can't be used; it ends as a dead letter"


@pytest.fixture
def queue(aws: Moto, monkeypatch: pytest.MonkeyPatch) -> SqsQueue:
    """A FIFO queue whose dead letters come after a few tries; the processes of the test find it in their environment.

    One try would not do: a push whose end another worker was quicker to record comes again, and finds nothing to do.
    """
    client = boto3.client("sqs", **aws.client)
    dead = client.create_queue(QueueName="anneal-dead.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": TRIES})
    url = client.create_queue(QueueName="anneal.fifo", Attributes={"FifoQueue": "true", "RedrivePolicy": policy})["QueueUrl"]
    monkeypatch.setenv("ANNEAL_QUEUE_URL", url)
    return SqsQueue(url)


def anneal(fleet: Fleet, *arguments: str) -> subprocess.CompletedProcess[str]:
    return ran(["--config", str(fleet.config), *arguments])


@contextmanager
def working(fleet: Fleet, log: Path) -> Iterator[Serving]:
    """`anneal work` beside the servers of a fleet; it ends in order when it is asked to."""
    worker = Serving(fleet.config, log)
    with log.open("ab") as out:
        command = [sys.executable, "-m", BRIEF, "--config", str(fleet.config), "work"]
        worker.process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out)
    try:
        yield worker
    finally:
        worker.process.send_signal(signal.SIGTERM)
        assert worker.process.wait(PATIENCE) == 0


def test_a_door_and_a_worker_beside_it_share_what_is_pushed(open_fleet: OpenFleet, queue: SqsQueue, tmp_path: Path) -> None:
    fleet = open_fleet(SIZE, settings={"metrics": {"bind": "127.0.0.1:0"}})
    dead = queue.beside(queue.url.replace("anneal.fifo", "anneal-dead.fifo"))
    server = fleet.serve(BRIEF).ready()
    with working(fleet, tmp_path / "work.log") as worker:
        until(lambda: worker.lines("worker started"), worker.log.read_text)
        fleet.converge()
        assert "anneal_worker_start_time_seconds" in scraped(worker)  # which of the two has run a target is chance
        until(lambda: all("anneal_heartbeat_timestamp_seconds{" in scraped(each) for each in (server, worker)))
        until(lambda: looked_after(fleet.kubectl, STATES) >= {fleet.target(number) for number in range(SIZE)})
        until(lambda: watches(fleet.kubectl, STATES))
        for number in range(SIZE):
            assert server.push(fleet.url, fleet.ref(number), fleet.move(number, 1)) == 202
        fleet.converge()
        until(lambda: pushed(server, worker) == {fleet.target(number) for number in range(SIZE)}, worker.log.read_text)
        queue.send([SqsEntry("{odd", fleet.target(0), "odd")])
        until(lambda: [*server.lines(UNUSED), *worker.lines(UNUSED)])
        until(lambda: 'anneal_dead_letters{queue="anneal-dead.fifo"}' in scraped(worker), lambda: scraped(worker))
        until(lambda: (left(queue), left(dead)) == (0, 1), lambda: f"{left(queue)} messages, dead letters {letters(dead)}")
        assert server.process
        server.process.send_signal(signal.SIGTERM)
    server.stop()
    assert (left(queue), letters(dead)) == (0, ["{odd"]), "all but the odd one is acknowledged"


def scraped(server: Serving) -> str:
    """Return what a server shows at `metrics.bind`."""
    url = f"http://127.0.0.1:{server.lines('listening for metrics')[0]['port']}/metrics"
    with urllib.request.urlopen(url, timeout=PATIENCE) as told:
        return str(told.read().decode())


def pushed(*servers: Serving) -> set[str]:
    """Return the targets of which a push has been looked for; a tick may have been quicker with its commit."""
    return {str(line["target"]) for server in servers for line in server.runs(trigger="push")}


def left(queue: SqsQueue) -> int:
    """Return how many messages there are, hidden or not."""
    found = queue.attributes("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    return sum(map(int, found.values()))


def letters(dead: SqsQueue) -> list[str]:
    """Return what is among the dead letters, which stay there."""
    return [each.body for each in dead.receive(10, 0, 0)]


def test_dead_letters_are_listed_and_asked_for_again(open_fleet: OpenFleet, queue: SqsQueue) -> None:
    fleet = open_fleet(1)
    run = queue.put(Job(fleet.target(0), "replay", actor="ops"))
    queue.send([SqsEntry("{odd", "odd", "odd")])
    for _ in range(TRIES + 1):
        queue.receive(10, 0, 0)
    told = json.loads(anneal(fleet, "dlq", "list", "-o", "json").stdout)
    assert (told["queue"], told["waiting"]) == ("anneal-dead.fifo", 2)
    assert {(row["target"], row.get("actor"), row.get("run")) for row in told["letters"]} == {
        (fleet.target(0), "ops", run),
        (None, None, None),
    }
    assert run in anneal(fleet, "dlq", "list").stdout
    done = anneal(fleet, "dlq", "redrive", "--target", fleet.target(0))
    assert done.returncode == 0, done.stderr
    assert f"asked for again: {fleet.target(0)}, replay as {run}" in done.stdout
    assert "left: message" in done.stdout
    (again,) = queue.receive(10, 0, 30)
    assert run in again.body
    assert "deleted, unreadable: message" in anneal(fleet, "dlq", "redrive", "--drop-unreadable").stdout
    assert "no dead letters" in anneal(fleet, "dlq", "list").stdout
