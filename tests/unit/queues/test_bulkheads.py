"""Bulkheads: who waits for a dead cluster or git host takes no thread from the others."""

from __future__ import annotations

import threading

import pytest

from handler.config.git_settings import Repository, SecretRef
from handler.config.settings import Cluster, Settings, Target
from handler.model.event import Job
from handler.queues.bulkheads import MOST_THREADS, THREADS, Bulkheads
from handler.queues.inline import Inline
from handler.queues.pending import Work
from tests.patience import PATIENCE


def target(name: str, cluster: str = "one", host: str = "git.example.com") -> Target:
    return Target(name, Repository(f"https://{host}/{name}.git"), ("shop",), cluster=Cluster(kubeconfig=SecretRef(file=cluster)))


def settings(*targets: Target) -> Settings:
    return Settings(targets)


@pytest.mark.parametrize("dead", [{"cluster": "dead"}, {"host": "dead.example.com"}])
def test_targets_of_a_dead_cluster_or_git_host_never_hold_up_the_others(dead: dict[str, str]) -> None:
    given = settings(*(target(f"dead-{number}", **dead) for number in range(40)), target("alive"))
    released, alive, begun = threading.Event(), threading.Event(), threading.Semaphore(0)

    def run(work: Work) -> None:
        if work.job.target == "alive":
            alive.set()
        else:
            begun.release()
            assert released.wait(PATIENCE)

    lanes = Bulkheads(given)
    queue = Inline(run, lanes.threads, lanes)
    queue.start()
    for number in range(40):
        queue.put(Job(f"dead-{number}", "push"))
    for _ in range(THREADS):
        assert begun.acquire(timeout=PATIENCE)
    queue.put(Job("alive", "push"))
    try:
        assert alive.wait(PATIENCE), "it waits behind the dead ones"
    finally:
        released.set()
        assert queue.stop(PATIENCE) == ()


def test_one_cluster_and_one_host_have_all_threads() -> None:
    lanes = Bulkheads(settings(*(target(f"t{number}") for number in range(9))))
    assert lanes.threads == THREADS
    assert lanes.beside([f"t{number}" for number in range(THREADS - 1)])("t8")


def test_a_bulkhead_has_room_again_when_a_run_ends() -> None:
    lanes = Bulkheads(settings(*(target(f"a{number}", "a") for number in range(9)), target("b0", "b")))
    full = [f"a{number}" for number in range(4)]
    assert not lanes.beside(full)("a8")
    assert lanes.beside(full)("b0")
    assert lanes.beside(full[1:])("a8")


def test_many_clusters_have_a_bounded_number_of_threads_and_two_runs_each() -> None:
    lanes = Bulkheads(settings(*(target(f"{number}-{side}", f"c{number}") for number in range(30) for side in "abc")))
    assert lanes.threads == MOST_THREADS
    assert lanes.beside(["0-a"])("0-b")
    assert not lanes.beside(["0-a", "0-b"])("0-c")


@pytest.mark.parametrize(("clusters", "hung"), [(2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6), (8, 7), (9, 7), (30, 7)])
@pytest.mark.parametrize("lane", ["cluster", "host"])
def test_hanging_clusters_or_hosts_below_the_limit_leave_threads_free(clusters: int, hung: int, lane: str) -> None:
    lanes = Bulkheads(settings(*(target(f"{number}-{run}", **{lane: f"c{number}"}) for number in range(clusters) for run in range(20))))
    busy: list[str] = []
    for name in (f"{number}-{run}" for number in range(hung) for run in range(20)):
        if lanes.beside(busy)(name):
            busy.append(name)
    assert len(busy) < lanes.threads
    assert lanes.beside(busy)(f"{clusters - 1}-0")


@pytest.mark.parametrize("lane", ["cluster", "host"])
def test_known_hanging_clusters_or_hosts_leave_threads_for_the_others(lane: str) -> None:
    """Fifty clusters of which forty hang; a survey has found that out, or a run has."""
    lanes = Bulkheads(settings(*(target(f"{number}-{run}", **{lane: f"c{number}"}) for number in range(50) for run in range(5))))
    kind, code = {"cluster": ("cluster", "cluster-unavailable"), "host": ("git host", "git-unavailable")}[lane]
    for number in range(40):
        if number % 2:
            lanes.mute(f"{number}-0", kind)
        else:
            lanes.ended(f"{number}-0", code)
    busy: list[str] = []
    for name in (f"{number}-{run}" for number in range(40) for run in range(5)):
        if lanes.beside(busy)(name):
            busy.append(name)
    assert 0 < len(busy) <= MOST_THREADS // 4
    assert lanes.beside(busy)("49-0")


def test_a_cluster_that_answers_again_has_its_whole_bulkhead() -> None:
    lanes = Bulkheads(settings(*(target(f"{number}-{run}", f"c{number}") for number in range(20) for run in range(2))))
    for number in range(10):
        lanes.mute(f"{number}-0", "cluster")
    hung = [f"{number}-0" for number in range(4)]
    assert not lanes.beside(hung)("9-0")
    lanes.ended("9-1", "")
    assert lanes.beside(hung)("9-0")
    assert not lanes.beside(hung)("8-0")


def test_a_run_refused_for_another_reason_shows_that_its_cluster_answers() -> None:
    lanes = Bulkheads(settings(target("a", "a"), target("b", "b"), target("c", "c")))
    lanes.mute("a", "cluster")
    lanes.ended("a", "plan-refused")
    assert lanes.beside(["b", "c", "b"])("a")


def test_the_only_cluster_keeps_its_threads_while_it_hangs() -> None:
    lanes = Bulkheads(settings(*(target(f"t{number}") for number in range(9))))
    lanes.mute("t0", "cluster")
    assert lanes.beside(["t1", "t2", "t3"])("t0")


@pytest.mark.parametrize("code", ["kubeconfig-invalid", "secret-unavailable", "access-denied", "server-pinned"])
def test_a_failure_before_any_answer_doesnt_unmute_a_cluster(code: str) -> None:
    lanes = Bulkheads(settings(*(target(f"dead-{number}", "dead") for number in range(9)), target("alive")))
    share = [f"dead-{number}" for number in range(lanes.threads // 4)]
    lanes.ended("dead-8", "cluster-unavailable")
    assert not lanes.beside(share)("dead-8")
    lanes.ended("dead-7", code)
    assert not lanes.beside(share)("dead-8")
    lanes.ended("dead-7", "manifest-invalid")
    assert lanes.beside(share)("dead-8")
