"""On a FIFO queue the laws hold whatever happens to messages and workers, nothing that was asked for is forgotten; mistakes are noticed.

`ANNEAL_MODEL_EXAMPLES=5000` searches further, by chance; without it the same examples are tried each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from handler.engine.run.context import RunContext
from handler.model.errors import PlanRefused
from handler.model.event import Job
from handler.queues import message
from handler.queues.sqs import Received, SqsEntry
from handler.state.lease import LeaseLock
from tests.model.convergence import converged, quiet
from tests.model.fifo_queue import QueueModel, Taker, answered, queued
from tests.model.model import Model
from tests.model.searching import TIMEOUT
from tests.model.state_machine import Deployments
from tests.model.targets import SLOTS, TARGETS
from tests.model.worker_process import KILL_AFTER, KILL_BEFORE, Order

EXAMPLES = int(os.environ.get("ANNEAL_MODEL_EXAMPLES", "0"))
PROFILE = settings(
    max_examples=EXAMPLES or 20,
    stateful_step_count=30,
    deadline=None,
    derandomize=not EXAMPLES,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
FRONT = SLOTS[0]


class Queued(Deployments):
    """Two functions on three targets, and a queue between them and the rest."""

    def begun(self) -> Model:
        return QueueModel()

    @property
    def queue(self) -> QueueModel:
        assert isinstance(self.model, QueueModel)
        return self.model

    @rule(name=st.sampled_from((*TARGETS, "nobody")), body=st.sampled_from(["{", "[]", '{"v":2}']), number=st.integers(0, 99))
    def poison(self, name: str, body: str, number: int) -> None:
        self.queue.line.sqs.send([SqsEntry(body, name, f"{name}-{body}-{number}")])

    @rule()
    def redrive(self) -> None:
        self.queue.redrive()

    @rule(first=st.integers(0, 1), variant=st.integers(1, 3), writes=st.integers(2, 6), others=st.integers(1, 5), after=st.integers(1, 15))
    def another_gets_it_meanwhile(self, first: int, variant: int, writes: int, others: int, after: int) -> None:
        """A run takes longer than its message is hidden; both go on, by turns."""
        self.push({slot: variant for slot in SLOTS if slot.target == "front"}, "")
        self.deliver(first, -1, keep=False)
        self.model.go_to_write(self.model.workers[first], writes)
        self.model.advance(61.0)
        self.model.go_to_write(self.model.workers[1 - first], others)
        for worker in (first, 1 - first) * after:
            self.model.step(self.model.workers[worker])

    def teardown(self) -> None:
        try:
            if not self.model.failed:
                self.queue.settle()
                for question in (converged, quiet):
                    question(self.model)
                answered(self.queue)
        finally:
            self.model.close()


@pytest.mark.timeout(TIMEOUT)
def test_the_laws_hold_on_a_queue_whatever_happens() -> None:
    with queued():
        run_state_machine_as_test(Queued, settings=PROFILE)


# --- that it can fail
def acknowledged_first(taker: Taker, received: Received) -> None:
    """A worker that acknowledges, and then runs."""
    taker.line.sqs.delete([received])
    taker.work_on(received)


def known_by_commit(job: Job, run: str) -> str:
    """A queue that knows a push by its commit."""
    return f"{job.target}-{job.hint or run}"


def of_the_living(self: LeaseLock, look: Callable[[LeaseLock], Any] = LeaseLock._look) -> Any:
    """A worker that takes the queue for a lock, and the Lease's holder for dead."""
    return look(self)[0], True


@pytest.fixture
def model() -> Iterator[QueueModel]:
    with queued():
        made = QueueModel()
        try:
            made.settle()
            yield made
        finally:
            made.close()


def deliver(model: QueueModel) -> None:
    """Let the host's deliveries come."""
    for delivery in model.deliveries:
        for target in TARGETS:
            model.workers[0].accept(Job(target, "push", hint=delivery.hint, actor="ann", deliveries=(delivery,)))
    model.deliveries.clear()


def killed_at(model: QueueModel, requests: int, how: Order) -> None:
    """A push whose worker dies after so many requests."""
    model.push({FRONT: 1 + requests % 3})
    deliver(model)
    for _ in range(requests):
        model.step(model.workers[0])
    model.kill(model.workers[0], how)


def back_and_forth(model: QueueModel) -> None:
    """A branch that comes back to a commit within five minutes."""
    first = model.host.head
    model.push({FRONT: 2})
    model.force_push(first)
    model.push({FRONT: 3})
    model.force_push(first)
    for delivery in list(model.deliveries):
        model.deliveries[:] = [delivery]
        deliver(model)
        model.finish(model.workers[0])


def taken_by_two(model: QueueModel) -> None:
    """A run that stands before a write when its message comes to another worker, and goes on when that one has begun to write."""
    model.push({slot: 2 for slot in SLOTS if slot.target == "front"})
    deliver(model)
    model.go_to_write(model.workers[0], 3)
    model.advance(61.0)
    model.go_to_write(model.workers[1], 3)
    for process in (0, 1) * 40:
        model.step(model.workers[process])


def ended(model: QueueModel) -> None:
    model.settle()
    converged(model)
    quiet(model)
    answered(model)


@pytest.mark.parametrize("how", [KILL_BEFORE, KILL_AFTER], ids=["before", "after"])
def test_a_worker_that_dies_anywhere_loses_nothing(model: QueueModel, how: Order) -> None:
    for requests in range(0, 30, 2):
        killed_at(model, requests, how)
    ended(model)


def test_a_branch_that_comes_back_is_seen_each_time(model: QueueModel) -> None:
    back_and_forth(model)
    ended(model)


def test_two_workers_on_one_message_are_one_writer(model: QueueModel) -> None:
    taken_by_two(model)
    ended(model)


def done_twice(model: QueueModel) -> None:
    """A message whose worker dies when its run has ended: another one gets it. A person approved, and that was used."""
    model.push({slot: 2 for slot in SLOTS if slot.target == "front"})
    deliver(model)
    model.finish(model.workers[0])
    model.replay(model.workers[0], "front", model.host.head)
    worker = model.workers[0]
    while model.step(worker) and not (worker.main and worker.main.meets == "acknowledge"):
        pass
    model.kill(worker, KILL_BEFORE)
    model.advance(61.0)


def test_what_was_asked_by_name_is_done_once_however_often_it_comes(model: QueueModel) -> None:
    done_twice(model)
    ended(model)


def test_an_end_that_is_written_over_is_noticed(model: QueueModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(run: RunContext) -> None:
        """An engine that does what it has done, and fails for it."""
        if run.job.acts and any(entry.id == run.job.run for entry in run.state.history):
            raise PlanRefused.of("target front", "nothing is held")

    monkeypatch.setattr("handler.engine.requests.ended_before", again)
    done_twice(model)
    with pytest.raises(AssertionError, match="I9"):
        ended(model)


def test_a_request_without_an_entry_is_noticed(model: QueueModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.engine.requests.noted", lambda _run, _job, result: replace(result, recorded=True))
    model.suspend("front")
    model.replay(model.workers[0], "front", model.host.head)
    with pytest.raises(AssertionError, match="I9"):
        ended(model)


def test_acknowledging_before_the_run_is_noticed(model: QueueModel) -> None:
    model.handle = acknowledged_first
    model.replace(model.workers[0])
    killed_at(model, 3, KILL_BEFORE)
    with pytest.raises(AssertionError, match="I9"):
        ended(model)


def test_a_queue_that_knows_a_push_by_its_commit_is_noticed(model: QueueModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message, "deduplication", known_by_commit)
    back_and_forth(model)
    with pytest.raises(AssertionError, match="I9"):
        ended(model)


def test_a_worker_that_takes_the_queue_for_a_lock_is_noticed(model: QueueModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaseLock, "_look", of_the_living)
    with pytest.raises(AssertionError, match="I6"):
        taken_by_two(model)
    model.failed = True
