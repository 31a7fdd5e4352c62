"""What was asked by name and acknowledged is run once, whenever the worker dies: real sockets, workers of this process."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from handler.model.errors import ClusterUnavailable, TooManyRequests
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.queues import message, socket_frames
from handler.queues import outbox as outboxes
from handler.queues.outbox import Outbox
from handler.queues.pending import Work
from handler.state.record import Run, State
from handler.state.record_format import stamp
from handler.worker.worker import Worker
from tests.fakes.objects import Body, FakeObjects
from tests.fakes.signed_webhooks import INFRA, door_settings
from tests.fakes.worker_parts import parts_of, remember
from tests.patience import PATIENCE, until

pytestmark = pytest.mark.slow

ASKED = Job("infra", "replay", force=True, actor="ops")
PLAIN = Job("infra", "replay", actor="ops")


class Life:
    """One life of the worker. Its runs wait until they are let go; to `die` is to be gone without a word."""

    def __init__(self, path: Path, objects: FakeObjects) -> None:
        self.ran: list[Job] = []
        self.begun, self.let_go = threading.Event(), threading.Event()
        self._worker = Worker(door_settings(), parts_of(self._run, objects=objects))
        self._path = path
        self._thread = threading.Thread(target=self._worker.serve, args=(path,))
        self._thread.start()

    def _run(self, job: Job, stop: threading.Event, _meanwhile: object = None) -> Result:
        if job.trigger == "tick":
            return Result(job.target, Outcome.UNCHANGED, run=job.run)
        self.ran.append(job)
        self.begun.set()
        assert self.let_go.wait(PATIENCE)
        return Result(job.target, Outcome.APPLIED, run=job.run)

    def die(self) -> None:
        self._path.unlink(missing_ok=True)
        self._worker.stop()
        self.let_go.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@pytest.fixture
def objects() -> FakeObjects:
    return FakeObjects()


def test_a_request_is_forgotten_once_its_run_has_ended(path: Path, objects: FakeObjects) -> None:
    life, outbox = Life(path, objects), Outbox(path)
    run = outbox.put(ASKED)
    assert outbox.kept == 1
    assert life.begun.wait(PATIENCE)
    assert outbox.waits(run)
    life.let_go.set()
    until(lambda: outbox.kept == 0)
    assert len(life.ran) == 1
    assert outbox.close(PATIENCE)
    life.die()


def test_pushes_are_not_kept_for_replay(path: Path) -> None:
    outbox = Outbox(path)
    run = outbox.put(Job("infra", "push", hint="a" * 40))
    assert outbox.kept == 0
    waiting = outbox.waits(run)
    assert waiting
    assert waiting.runs == (run,), "what no worker has is found here"
    assert outbox.waits("infra.other") is None
    assert not outbox.close(0.0)


def test_a_new_worker_is_asked_again_with_all_that_was_asked_under_the_same_id(path: Path, objects: FakeObjects) -> None:
    first, outbox = Life(path, objects), Outbox(path)
    run = outbox.put(ASKED)
    assert first.begun.wait(PATIENCE)
    second = _replaced(first, path, objects)
    assert second.begun.wait(PATIENCE)
    assert [(job.run, job.force, job.actor) for job in second.ran] == [(run, True, "ops")]
    second.let_go.set()
    until(lambda: outbox.kept == 0)
    assert outbox.close(PATIENCE)
    second.die()
    first.die()


def _replaced(first: Life, path: Path, objects: FakeObjects) -> Life:
    """Take the first worker's socket away, so that no process hears its end, and start another."""
    path.unlink()
    second = Life(path, objects)
    first._worker.stop()
    return second


def test_what_has_ended_in_the_record_is_not_run_by_a_new_worker(path: Path, objects: FakeObjects) -> None:
    first, outbox = Life(path, objects), Outbox(path)
    run = outbox.put(ASKED)
    assert first.begun.wait(PATIENCE)
    remember(objects, State("infra", "default", "u-1", INFRA, history=(Run(run, "replay", "applied", stamp(time.time())),)))
    second = _replaced(first, path, objects)
    until(lambda: outbox.kept == 0)
    assert run not in [job.run for job in second.ran], "its clock may run others"
    assert outbox.close(PATIENCE)
    second.die()
    first.die()


def test_while_the_record_cant_be_read_a_new_worker_waits(path: Path, objects: FakeObjects) -> None:
    first, outbox = Life(path, objects), Outbox(path)
    run = outbox.put(ASKED)
    assert first.begun.wait(PATIENCE)
    refused = threading.Semaphore(0)

    def broken(verb: str, _body: Body) -> None:
        refused.release()
        raise ClusterUnavailable.of("cluster", "is away")

    objects.before = broken
    second = _replaced(first, path, objects)
    for _ in range(2):
        assert refused.acquire(timeout=PATIENCE)
    assert (second.ran, outbox.kept) == ([], 1)
    objects.before = None
    assert second.begun.wait(PATIENCE)
    assert [job.run for job in second.ran] == [run]
    second.die()
    until(lambda: not path.exists())
    first.die()
    outbox.close(0.0)


def test_a_plain_request_merged_into_a_waiting_run_ends_with_it(path: Path, objects: FakeObjects) -> None:
    life, outbox = Life(path, objects), Outbox(path)
    outbox.put(Job("infra", "push"))
    assert life.begun.wait(PATIENCE)
    runs = [outbox.put(Job("infra", "push", hint="h")), outbox.put(Job("infra", "replay", actor="ops"))]
    until(lambda: outbox.waiting == 0)
    first, second = map(life._worker.answers.runs.find, runs)
    assert first
    assert first == second, "the start-up tick may have waited already: then they are in its run"
    life.let_go.set()
    until(lambda: outbox.kept == 0)
    assert [(job.trigger, job.hint, job.actor) for job in life.ran[1:]] == [("replay", "h", "ops")]
    assert outbox.close(PATIENCE)
    life.die()


def test_two_named_requests_during_a_run_are_run_in_turn_for_their_actors(path: Path, objects: FakeObjects) -> None:
    life, outbox = Life(path, objects), Outbox(path)
    outbox.put(Job("infra", "push"))
    assert life.begun.wait(PATIENCE)
    asked = [Job("infra", "replay", approve="h1", actor="boss"), Job("infra", "replay", commit="c", dry_run=True, actor="ci")]
    runs = [outbox.put(job) for job in asked]
    outbox.put(Job("infra", "push", hint="h", actor="ann"))
    until(lambda: outbox.waiting == 0)
    life.let_go.set()
    until(lambda: outbox.kept == 0)
    until(lambda: any(job.hint == "h" for job in life.ran))
    ran = {job.run: (job.approve, job.commit, job.dry_run, job.actor) for job in life.ran}
    assert [ran[run] for run in runs] == [("h1", "", False, "boss"), ("", "c", True, "ci")]
    assert [(job.commit, job.actor) for job in life.ran if job.hint == "h"] == [("", "ann")]
    assert outbox.close(PATIENCE)
    life.die()


def test_a_request_possibly_taken_is_asked_for_before_it_is_sent_again(path: Path, objects: FakeObjects) -> None:
    with socket.socket(socket.AF_UNIX) as dying:
        dying.bind(str(path))
        dying.listen()
        outbox = Outbox(path)
        run = outbox.put(ASKED)
        connection, _ = dying.accept()
        assert socket_frames.receive(connection) is not None
        connection.close()
    remember(objects, State("infra", "default", "u-1", INFRA, history=(Run(run, "replay", "applied", stamp(time.time())),)))
    path.unlink()
    life = Life(path, objects)
    until(lambda: outbox.kept == 0)
    assert life.ran == []
    assert outbox.close(PATIENCE)
    life.die()


def test_the_same_frame_sent_twice_is_one_run(path: Path, objects: FakeObjects) -> None:
    life = Life(path, objects)
    work = Work.of(PLAIN)
    outbox = Outbox(path)
    until(outbox.ready)  # the path is there before the worker listens
    outbox.close(0.0)
    with socket_frames.connect(path, PATIENCE) as connection:
        first = socket_frames.ask(connection, {"job": message.document(work)})
        assert life.begun.wait(PATIENCE)
        assert socket_frames.ask(connection, {"job": message.document(work)}) == first
        assert socket_frames.ask(connection, {"job": message.document(Work(replace(PLAIN, hint="h"), (*work.runs, "other"), work.named))})[
            "taken"
        ]
    life.let_go.set()
    until(lambda: len(life.ran) == 2)
    assert (life.ran[1].trigger, life.ran[1].hint) == ("push", "h")
    life.die()


def test_so_much_may_be_asked_of_one_target_and_no_more(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outboxes, "MOST", 2)
    outbox = Outbox(path)
    for _ in range(2):
        outbox.put(ASKED)
    with pytest.raises(TooManyRequests, match="2 requests of ops"):
        outbox.put(ASKED)
    outbox.put(Job("shop-prod", "replay", actor="ops"))
    outbox.put(Job("infra", "replay", approve="h1", actor="boss"))
    outbox.close(0.0)
