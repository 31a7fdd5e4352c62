"""What the model has found, each by the shortest way there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from handler.model.event import Job
from tests.fakes.apiserver import Call
from tests.model.convergence import converged, settle
from tests.model.model import Model
from tests.model.simulated_time import simulated
from tests.model.targets import SLOTS
from tests.model.worker_process import Process

FRONT, BACK = SLOTS[0], SLOTS[4]


@pytest.fixture
def model() -> Iterator[Model]:
    """Everything is at the head, and both workers know it."""
    with simulated():
        made = Model()
        try:
            settle(made)
            converged(made)
            yield made
        finally:
            made.close()


def go_until(model: Model, process: Process, there: Callable[[Call], bool]) -> None:
    """Let a worker go on until such a request is on the wire."""
    while not (process.main and isinstance(process.main.meets, Call) and there(process.main.meets)):
        assert model.step(process), "it has nothing to do any more"


def looks_at(target: str) -> Callable[[Call], bool]:
    return lambda call: call.asked.method == "GET" and call.asked.path.endswith(f"/configmaps/anneal-{target}")


def test_a_look_at_the_host_from_before_a_newer_record_leads_nowhere(model: Model) -> None:
    """A process that starts has looked for `front`; while it stands still, another one records a newer commit for `back`."""
    slow, quick = model.workers
    model.replace(slow)
    slow = model.workers[0]
    go_until(model, slow, looks_at("back"))
    model.push({FRONT: 1})
    quick.accept(Job("back", "tick"))
    model.finish(quick)
    model.finish(slow)
    state = model.state("back")
    assert state
    assert state.commit == model.host.head


def test_a_look_at_the_host_from_before_our_own_last_run_leads_nowhere(model: Model) -> None:
    """`back` is asked for twice; its first run finds, under the Lease, a newer head than the look that the second could use."""
    worker = model.workers[0]
    model.push({BACK: 1})
    worker.accept(Job("front", "tick"))
    worker.accept(Job("back", "tick"))
    go_until(model, worker, looks_at("back"))
    worker.accept(Job("back", "tick"))
    model.push({FRONT: 1})
    model.finish(worker)
    state = model.state("back")
    assert state
    assert state.commit == model.host.head
