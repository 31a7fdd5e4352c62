"""Jobs coalesce: one pending per target, the newest wins, nothing asked is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from handler.model.event import Job
from handler.queues.inline import Inline
from handler.queues.pending import Work
from tests.patience import PATIENCE


def pushed(target: str = "shop", hint: str = "") -> Job:
    return Job(target, "push", hint=hint)


@dataclass
class Runs:
    """Runs that begin when they are called and end when the test lets them."""

    begun: list[Work] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    gates: dict[str, threading.Semaphore] = field(default_factory=dict)
    at_once: dict[str, int] = field(default_factory=dict)
    most: int = 0

    def __call__(self, work: Work) -> None:
        target = work.job.target
        with self.changed:
            self.begun.append(work)
            self.at_once[target] = self.at_once.get(target, 0) + 1
            self.most = max(self.most, self.at_once[target])
            gate = self.gates.setdefault(target, threading.Semaphore(0))
            self.changed.notify_all()
        assert gate.acquire(timeout=PATIENCE)
        with self.changed:
            self.at_once[target] -= 1

    def wait(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.begun) >= count, PATIENCE), self.begun

    def release(self, target: str = "shop") -> None:
        with self.changed:
            self.gates.setdefault(target, threading.Semaphore(0)).release()


@pytest.fixture
def runs() -> Runs:
    return Runs()


@pytest.fixture
def queue(runs: Runs) -> Iterator[Inline]:
    queue = Inline(runs, threads=2)
    queue.start()
    yield queue
    for target in list(runs.gates):
        for _ in range(10):
            runs.release(target)
    assert queue.stop(PATIENCE) == ()


def test_a_job_arriving_during_a_run_is_run_after_it_merged_with_others(queue: Inline, runs: Runs) -> None:
    first = queue.put(pushed(hint="a"))
    runs.wait(1)
    asked = [queue.put(pushed(hint="b")), queue.put(pushed(hint="c"))]
    runs.release()
    runs.wait(2)
    assert [work.job for work in runs.begun] == [pushed(hint="a"), pushed(hint="c")]
    assert runs.begun[0].runs == (first,)
    assert runs.begun[1].runs == tuple(asked)
    assert runs.begun[1].run == asked[0]


def test_targets_run_in_parallel_up_to_the_bound(queue: Inline, runs: Runs) -> None:
    for target in ("a", "b", "c"):
        queue.put(pushed(target))
    runs.wait(2)
    assert {work.job.target for work in runs.begun} == {"a", "b"}
    runs.release("b")
    runs.wait(3)
    assert runs.begun[2].job.target == "c"


def test_a_busy_target_takes_no_thread_from_others(queue: Inline, runs: Runs) -> None:
    queue.put(pushed("a"))
    runs.wait(1)
    for _ in range(5):
        queue.put(pushed("a"))
    queue.put(pushed("b"))
    runs.wait(2)
    assert runs.begun[1].job.target == "b"


def test_a_target_is_serial_whatever_is_asked() -> None:
    runs = Runs()
    queue = Inline(runs, threads=8)
    queue.start()
    senders = [threading.Thread(target=lambda: [queue.put(pushed()) for _ in range(50)]) for _ in range(4)]
    for sender in senders:
        sender.start()
    for _ in range(400):
        runs.release()
    for sender in senders:
        sender.join()
    assert not queue.stop(PATIENCE)
    assert runs.most == 1


def test_a_run_that_raises_ends_no_thread_and_frees_its_target(caplog: pytest.LogCaptureFixture) -> None:
    ran: list[str] = []
    begun, last = threading.Event(), threading.Event()

    def run(work: Work) -> None:
        ran.append(work.job.hint)
        (last if work.job.hint == "last" else begun).set()
        raise RuntimeError("metrics")

    queue = Inline(run, threads=2)
    queue.start()
    for number in range(8):
        queue.put(pushed(f"t{number}"))
    assert begun.wait(PATIENCE)
    queue.put(pushed("t0", "last"))
    assert last.wait(PATIENCE)
    assert queue.stop(PATIENCE) == ()
    assert len(ran) == 9
    assert caplog.messages == ["what follows a run has failed"] * 9


def test_stopping_names_who_still_runs_and_starts_nothing_more(runs: Runs) -> None:
    queue = Inline(runs, threads=1)
    queue.start()
    queue.put(pushed("a"))
    runs.wait(1)
    queue.put(pushed("b"))
    assert queue.stop(0.0) == ("a",)
    runs.release("a")
    assert queue.stop(PATIENCE) == ()
    assert len(runs.begun) == 1


def test_a_queue_without_an_index_remembers_no_run() -> None:
    queue = Inline(lambda _: None, threads=1)
    queue.start()
    for number in range(50):
        queue.put(Job(f"t{number}", "push"))
    assert queue.stop(PATIENCE) == ()
    assert queue.runs._entries == {}
