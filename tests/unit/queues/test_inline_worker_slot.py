"""A run that only waits leaves its place: a wait of minutes holds up no other run, on a queue of one's own and on a shared one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from handler.config.git_settings import Repository
from handler.config.settings import Cluster, Settings, Target
from handler.engine.run.errors import DependencyNotReady
from handler.model.event import Job
from handler.model.queue_view import QueueView
from handler.model.result import Outcome, Result
from handler.queues.bulkheads import Bulkheads
from handler.queues.inline import Inline
from handler.queues.pending import RESTING, Work
from handler.worker.worker import Worker
from tests.fakes.signed_webhooks import door_settings
from tests.fakes.sqs_side import Side
from tests.fakes.worker_parts import parts_of
from tests.patience import PATIENCE, until


@dataclass
class Waiting:
    """Runs that wait until the test opens the gate, and others that only run."""

    gate: threading.Event = field(default_factory=threading.Event)
    changed: threading.Condition = field(default_factory=threading.Condition)
    patience: dict[str, float] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    most: int = 0

    def run(self, work: Work) -> None:
        target = work.job.target
        working = len(self.queue.busy) - len(self.queue.resting)
        with self.changed:
            self.most = max(self.most, working)
        if target.startswith("w"):
            with self.queue.place(target).resting() as patience:
                with self.changed:
                    self.patience[target] = patience
                    self.changed.notify_all()
                assert not patience or self.gate.wait(PATIENCE)
        with self.changed:
            self.ended.append(target)
            self.changed.notify_all()

    def serve(self, lanes: Bulkheads) -> Inline:
        self.queue = Inline(self.run, lanes.threads, lanes)
        self.queue.start()
        return self.queue


def lanes_of(*names: str) -> Bulkheads:
    """All on one cluster and one git host."""
    shop = Repository("https://git.example.com/acme/shop.git")
    return Bulkheads(Settings(targets=tuple(Target(name, shop, (name,), cluster=Cluster()) for name in names)))


@pytest.fixture
def runs() -> Iterator[Waiting]:
    made = Waiting()
    yield made
    made.gate.set()
    assert not made.queue.stop(PATIENCE)


def test_a_hundred_waiting_targets_release_their_worker_slots(runs: Waiting) -> None:
    waiting, others = [f"w{number}" for number in range(100)], [f"o{number}" for number in range(20)]
    lanes = lanes_of(*waiting, *others)
    queue = runs.serve(lanes)
    queue.put_all([Job(name, "push") for name in (*waiting, *others)])
    with runs.changed:
        assert runs.changed.wait_for(lambda: set(others) <= set(runs.ended) and len(runs.patience) == 100, PATIENCE)
        assert sum(patience > 0 for patience in runs.patience.values()) == RESTING
        assert runs.most <= lanes.threads
    assert len(queue.resting) == RESTING
    again = next(name for name, patience in runs.patience.items() if not patience)  # ended as `waiting`, and comes again
    runs.gate.set()
    with runs.changed:
        assert runs.changed.wait_for(lambda: len(runs.ended) == 120, PATIENCE)
    assert not queue.resting
    queue.put(Job(again, "tick"))
    with runs.changed:
        assert runs.changed.wait_for(lambda: runs.patience[again] > 0, PATIENCE)


def test_a_target_that_waits_is_not_run_beside_itself_and_sees_what_is_asked(runs: Waiting) -> None:
    queue = runs.serve(lanes_of("w"))
    queue.put(Job("w", "push"))
    with runs.changed:
        assert runs.changed.wait_for(lambda: "w" in runs.patience, PATIENCE)
    queue.put(Job("w", "push", hint="b" * 40))
    queue.put(Job("w", "replay", rollback=True, actor="ann"))
    asked = queue.place("w").asked()
    assert [(job.hint, job.rollback) for job in asked] == [("b" * 40, False), ("", True)]
    assert runs.ended == []
    assert queue.busy == ("w",)


def test_the_worker_slot_is_taken_again_when_the_last_thread_wakes(runs: Waiting) -> None:
    queue = runs.serve(lanes_of("w", "o"))
    place = queue.place("w")
    first, second = place.resting(), place.resting()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert queue.resting == ("w",)
    second.__exit__(None, None, None)
    assert len(queue.resting) == 0


def test_a_waiting_run_without_a_message_leaves_its_slot_to_the_sqs_consumer(side: Side) -> None:
    side.busy |= {f"t{number}" for number in range(side.threads)}
    assert side.consumer._room() == 0
    side.resting |= side.busy
    assert side.consumer._room() == side.threads


def test_a_run_that_keeps_messages_ends_as_waiting_and_goes_on_without_them(side: Side) -> None:
    seen: list[tuple[str, float, Worker]] = []
    again, gate = threading.Event(), threading.Event()

    def run(job: Job, _stop: threading.Event, meanwhile: QueueView) -> Result:
        with meanwhile.resting() as patience:
            seen.append((job.trigger, patience, worker))
            if not patience:
                return Result(job.target, Outcome.WAITING, recorded=True, run=job.run)
            again.set()
            assert gate.wait(PATIENCE)
        return Result(job.target, Outcome.APPLIED, recorded=True, run=job.run)

    worker = Worker(door_settings(), parts_of(run))
    worker._consumer = side.consumer
    side.consumer._take = worker._put
    worker._queue.start()
    try:
        side.push("shop-prod", "d1")
        side.poll()
        assert again.wait(PATIENCE)
        assert [(trigger, patience > 0) for trigger, patience, _ in seen] == [("push", False), ("tick", True)]
        assert side.fifo.messages == []
    finally:
        gate.set()
        assert not worker._queue.stop(PATIENCE)


def test_a_run_that_waits_for_another_target_keeps_no_message_and_is_not_begun_again_by_itself(side: Side) -> None:
    seen: list[str] = []
    other = threading.Event()

    def run(job: Job, _stop: threading.Event, _meanwhile: QueueView) -> Result:
        if job.trigger == "replay":  # after what the first run has left, as a target's runs are in turn
            other.set()
            return Result(job.target, Outcome.APPLIED, recorded=True, run=job.run)
        seen.append(job.trigger)
        return Result(job.target, Outcome.WAITING, code=DependencyNotReady.code, recorded=True, run=job.run)

    worker = Worker(door_settings(), parts_of(run))
    worker._consumer = side.consumer
    side.consumer._take = worker._put
    worker._queue.start()
    try:
        side.push("shop-prod", "d1")
        side.poll()
        until(lambda: not side.fifo.messages)
        worker._put(Work.of(Job("shop-prod", "replay", force=True)))
        assert other.wait(PATIENCE)
        assert seen == ["push"]
    finally:
        assert not worker._queue.stop(PATIENCE)
