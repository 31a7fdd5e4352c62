"""One write of an instance at a time, the newest picture, an end at once, and nothing that stays in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from handler.app import instance_statuses
from handler.state.record import Attempt, RunStatus
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.patience import PATIENCE
from tests.unit.app.instance_cluster import COMMIT, NOON, Cluster, applied, ended, phase


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def stopped(cluster: Cluster) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Stops the first write until the second event."""
    reached, go = threading.Event(), threading.Event()

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.method == "PATCH" and not reached.is_set():
            reached.set()
            assert go.wait(PATIENCE)
        return do()

    cluster.way = way
    yield reached, go
    go.set()


def test_one_write_of_an_instance_is_under_way_and_the_newest_picture_wins(
    cluster: Cluster, stopped: tuple[threading.Event, threading.Event]
) -> None:
    reached, go = stopped
    statuses = cluster.statuses(pause=0.0)
    cluster.state = applied(attempt=Attempt(COMMIT, "r", "s", "t", NOON), status=RunStatus("applying"))
    statuses.hear(phase())
    assert reached.wait(PATIENCE)
    for _ in range(50):
        statuses.hear(phase())
    cluster.state = applied()
    statuses.hear(ended())
    statuses.hear(phase())
    assert not statuses.settle(0.0)
    assert len(cluster.writes) == 1
    go.set()
    assert statuses.settle(PATIENCE)
    assert len(cluster.writes) == 2
    assert cluster.ready["reason"] == "Applied"


def test_progress_waits_for_its_pause_and_an_end_does_not(cluster: Cluster) -> None:
    statuses = cluster.statuses(pause=time.monotonic() + 3600.0)  # a machine that has just started has a small clock
    cluster.state = applied(attempt=Attempt(COMMIT, "r", "s", "t", NOON), status=RunStatus("applying"))
    statuses.hear(phase())
    assert statuses.settle(PATIENCE)
    cluster.state = applied(attempt=Attempt(COMMIT, "r", "s", "t", NOON), status=RunStatus("applying", message="half of it"))
    statuses.hear(phase())
    assert not statuses.settle(0.2)
    assert len(cluster.writes) == 1
    cluster.state = applied()
    statuses.hear(ended())
    assert statuses.settle(PATIENCE)
    assert len(cluster.writes) == 2
    assert cluster.ready["reason"] == "Applied"


def test_what_is_due_is_bounded_and_goes_with_its_instance(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance_statuses, "MOST", 2)
    monkeypatch.setattr(instance_statuses, "THREADS", 0)
    statuses = cluster.statuses()
    for number in range(5):
        statuses.look(f"grafana.default.x{number}")
    assert len(statuses._due) == 2
    statuses.forget("grafana.default.x0")
    assert list(statuses._due) == ["grafana.default.x1"]


def test_nothing_is_kept_of_what_is_written(cluster: Cluster) -> None:
    statuses = cluster.statuses(pause=0.0)
    statuses.hear(ended())
    assert statuses.settle(PATIENCE)
    assert cluster.writes
    assert [len(each) for each in (statuses._due, statuses._busy, statuses._cut, statuses._written)] == [0, 0, 0, 0]
