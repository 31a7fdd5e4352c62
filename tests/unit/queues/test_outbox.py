"""From the web process's outbox to the worker's inbox, over a real Unix-domain socket."""

from __future__ import annotations

import queue
import socket
import struct
import threading
from pathlib import Path
from typing import Any

import pytest

from handler.model.errors import WorkerUnavailable
from handler.model.event import Delivery, Job
from handler.queues import message, socket_frames
from handler.queues import outbox as outboxes
from handler.queues.inbox import Closed, Inbox
from handler.queues.outbox import Outbox
from handler.queues.pending import Work
from handler.web.gunicorn_worker import THREADS
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

JOB = Job(
    "shop",
    "push",
    hint="a" * 40,
    actor="ada\n",
    deliveries=(Delivery("1", "github", "refs/heads/main", "a" * 40, "ada", "now"),),
)


def listening(path: Path, arrived: queue.Queue[Work]) -> Inbox:
    def accept(work: Work) -> dict[str, Any]:
        arrived.put(work)
        return {"run": work.run, "boot": "one"}

    inbox = Inbox(path, accept)
    inbox.start()
    return inbox


def test_a_job_arrives_whole_with_its_run_id(path: Path) -> None:
    arrived: queue.Queue[Work] = queue.Queue()
    inbox, outbox = listening(path, arrived), Outbox(path)
    run = outbox.put(JOB)
    assert arrived.get(timeout=PATIENCE) == Work(JOB, (run,))
    assert any(outbox.ready() for _ in range(60)), "it has a second to say so each time"
    assert outbox.close(PATIENCE)
    inbox.stop()


def test_jobs_asked_while_the_worker_is_away_arrive_coalesced_when_it_is_back(path: Path) -> None:
    outbox = Outbox(path)
    assert not outbox.ready()
    first = outbox.put(JOB)
    others = [outbox.put(Job("other", "push", hint=str(number))) for number in range(100)]
    arrived: queue.Queue[Work] = queue.Queue()
    inbox = listening(path, arrived)
    assert outbox.close(PATIENCE)
    found = {work.job.target: work for work in arrived.queue}
    assert found["shop"].runs == (first,)
    assert found["other"].job.hint == "99"
    assert (found["other"].run, found["other"].runs[-1]) == (others[0], others[-1])
    inbox.stop()


def test_a_job_that_was_not_acknowledged_is_sent_again(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dying:
        dying.bind(str(path))
        dying.listen()
        outbox = Outbox(path)
        run = outbox.put(JOB)
        connection, _ = dying.accept()
        assert socket_frames.receive(connection) is not None
        connection.close()
    arrived: queue.Queue[Work] = queue.Queue()
    inbox = listening(path, arrived)
    assert arrived.get(timeout=PATIENCE).runs == (run,)
    assert outbox.close(PATIENCE)
    inbox.stop()


def test_closing_gives_up_on_a_worker_that_stays_away(path: Path) -> None:
    outbox = Outbox(path)
    outbox.put(JOB)
    assert not outbox.close(0.0)


@pytest.mark.parametrize(
    "frame",
    [
        b"\xff\xff\xff\xff",
        struct.pack(">I", 1) + b"[",
        struct.pack(">I", 2) + b"[]",
    ],
)
def test_a_frame_that_is_none_ends_its_connection_and_nothing_else(path: Path, frame: bytes) -> None:
    arrived: queue.Queue[Work] = queue.Queue()
    inbox = listening(path, arrived)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(str(path))
        connection.sendall(frame)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    outbox = Outbox(path)
    outbox.put(JOB)
    assert arrived.get(timeout=PATIENCE).job == JOB
    assert outbox.close(PATIENCE)
    inbox.stop()


@pytest.mark.parametrize(
    "frame", [{"job": 1}, {"job": {}, "runs": []}, {"job": {**message.document(Work(JOB, ("shop.1",))), "merged": 1}}], ids=str
)
def test_a_job_that_cant_be_read_is_refused_and_the_conversation_goes_on(path: Path, frame: dict[str, Any]) -> None:
    arrived: queue.Queue[Work] = queue.Queue()
    inbox = listening(path, arrived)
    with socket_frames.connect(path, PATIENCE) as connection:
        assert set(socket_frames.ask(connection, frame)) == {"refused"}
        assert socket_frames.ask(connection, {"job": message.document(Work(JOB, ("shop.2",)))})["run"] == "shop.2"
    inbox.stop()


def test_a_job_that_the_worker_cant_take_holds_up_no_other(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    arrived: queue.Queue[Work] = queue.Queue()

    def accept(work: Work) -> dict[str, Any]:
        if work.job.target == "bad":
            raise KeyError("inside")
        arrived.put(work)
        return {"run": work.run, "boot": "one"}

    inbox, outbox = Inbox(path, accept), Outbox(path)
    outbox.put(Job("bad", "push"))
    asked = outbox.put(Job("bad", "replay", approve="h1", actor="boss"))
    run = outbox.put(JOB)
    inbox.start()
    assert arrived.get(timeout=PATIENCE).run == run
    assert outbox.waits(asked), "what was asked by name is asked for again"
    assert outbox.close(PATIENCE)
    refused = [record.__dict__["fields"] for record in caplog.records if record.message == "the worker refused a job"]
    assert [(line["target"], line["trigger"], line["asked again"]) for line in refused] == [("bad", "push", []), ("bad", "replay", [asked])]
    assert refused[0]["seen"].startswith("KeyError at tests/unit/queues/test_outbox.py:")
    inbox.stop()


def test_a_worker_that_closes_hangs_up_and_the_next_one_is_handed_what_it_didnt_take(path: Path) -> None:
    hung_up = threading.Event()

    def accept(work: Work) -> dict[str, Any]:
        hung_up.set()
        raise Closed

    inbox, outbox = Inbox(path, accept), Outbox(path)
    inbox.start()
    run = outbox.put(JOB)
    assert hung_up.wait(PATIENCE)
    inbox.stop()
    arrived: queue.Queue[Work] = queue.Queue()
    inbox = listening(path, arrived)
    assert arrived.get(timeout=PATIENCE).run == run
    assert outbox.close(PATIENCE)
    inbox.stop()


def test_the_socket_of_a_killed_worker_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    inbox = listening(path, queue.Queue())
    outbox = Outbox(path)
    assert any(outbox.ready() for _ in range(60)), "it has a second to say so each time"
    inbox.stop()


def test_simultaneous_connections_to_the_worker_socket_are_accepted(path: Path) -> None:
    inbox = Inbox(path, lambda _work: {})  # it listens, and hasn't begun to accept
    connections = [socket_frames.connect(path, PATIENCE) for _ in range(2 * THREADS)]
    for connection in connections:
        connection.close()
    inbox.start()
    inbox.stop()


@pytest.fixture
def slow(path: Path) -> Any:
    """A worker that answers only once it is let go; how many questions it has."""
    held, begun = threading.Event(), threading.Semaphore(0)

    def answer(message: dict[str, Any]) -> dict[str, Any]:
        if message.get("ask") != "targets":
            begun.release()
            assert held.wait(PATIENCE)
        return {"asked": message.get("ask")}

    inbox = Inbox(path, lambda _work: {}, answer)
    inbox.start()
    yield held, begun
    held.set()
    inbox.stop()


def test_a_plan_is_waited_for_longer_than_a_record(path: Path, slow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    held, begun = slow
    monkeypatch.setattr(outboxes, "READ_TIMEOUT", 0.05)
    outbox, answers = Outbox(path), list[dict[str, Any]]()
    asking = threading.Thread(target=lambda: answers.append(outbox.ask("gap", name="shop")))
    asking.start()
    assert begun.acquire(timeout=PATIENCE)
    with pytest.raises(WorkerUnavailable, match="doesn't answer"):
        outbox.ask("run", run="x")
    held.set()
    asking.join(PATIENCE)
    assert answers == [{"taken": True, "asked": "gap"}]
    outbox.close(0.0)
