"""Bulkheads: who waits for a dead cluster or git host takes no thread from the others, nor does a plan of a pull request."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import pytest

from handler.config.git_settings import Repository, SecretRef
from handler.config.settings import Cluster, Settings, Target
from handler.model.event import Job
from handler.queues.bulkheads import MOST_THREADS, THREADS, Bulkheads
from handler.queues.inline import Inline
from handler.queues.pending import Work
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


def target(name: str, cluster: str = "one", host: str = "git.example.com") -> Target:
    return Target(name, Repository(f"https://{host}/{name}.git"), ("shop",), cluster=Cluster(kubeconfig=SecretRef(file=cluster)))


def lanes_of(*targets: Target) -> Bulkheads:
    return Bulkheads(Settings(targets))


def taken(lanes: Bulkheads, busy: list[str], names: Iterable[str]) -> list[str]:
    """Return which run, as many of these as may, beside those that do already."""
    for name in names:
        if lanes.beside(busy)(name):
            busy.append(name)
    return busy


@pytest.mark.parametrize("dead", [{"cluster": "dead"}, {"host": "dead.example.com"}])
def test_targets_of_a_dead_cluster_or_git_host_never_hold_up_the_others(dead: dict[str, str]) -> None:
    lanes = lanes_of(*(target(f"dead-{number}", **dead) for number in range(40)), target("alive"))
    released, alive, begun = threading.Event(), threading.Event(), threading.Semaphore(0)

    def run(work: Work) -> None:
        if work.job.target == "alive":
            alive.set()
        else:
            begun.release()
            assert released.wait(PATIENCE)

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
    lanes = lanes_of(*(target(f"t{number}") for number in range(9)))
    assert lanes.threads == THREADS
    assert lanes.beside([f"t{number}" for number in range(THREADS - 1)])("t8")


def test_a_bulkhead_has_room_again_when_a_run_ends() -> None:
    lanes = lanes_of(*(target(f"a{number}", "a") for number in range(9)), target("b0", "b"))
    full = [f"a{number}" for number in range(4)]
    assert not lanes.beside(full)("a8")
    assert lanes.beside(full)("b0")
    assert lanes.beside(full[1:])("a8")


def test_many_clusters_have_a_bounded_number_of_threads_and_two_runs_each() -> None:
    lanes = lanes_of(*(target(f"{number}-{side}", f"c{number}") for number in range(30) for side in "abc"))
    assert lanes.threads == MOST_THREADS
    assert lanes.beside(["0-a"])("0-b")
    assert not lanes.beside(["0-a", "0-b"])("0-c")


@pytest.mark.parametrize("lane", ["cluster", "host"])
def test_known_hanging_clusters_or_hosts_leave_threads_for_the_others(lane: str) -> None:
    """Fifty clusters of which forty hang; a survey has found that out, or a run has."""
    lanes = lanes_of(*(target(f"{number}-{run}", **{lane: f"c{number}"}) for number in range(50) for run in range(5)))
    kind, code = {"cluster": ("cluster", "cluster-unavailable"), "host": ("git host", "git-unavailable")}[lane]
    for number in range(40):
        if number % 2:
            lanes.mute(f"{number}-0", kind)
        else:
            lanes.ended(f"{number}-0", code)
    busy = taken(lanes, [], (f"{number}-{run}" for number in range(40) for run in range(5)))
    assert 0 < len(busy) <= MOST_THREADS // 4
    assert lanes.beside(busy)("49-0")


def test_a_cluster_that_answers_again_has_its_whole_bulkhead() -> None:
    lanes = lanes_of(*(target(f"{number}-{run}", f"c{number}") for number in range(20) for run in range(2)))
    for number in range(10):
        lanes.mute(f"{number}-0", "cluster")
    hung = [f"{number}-0" for number in range(4)]
    assert not lanes.beside(hung)("9-0")
    lanes.ended("9-1", "")
    assert lanes.beside(hung)("9-0")
    assert not lanes.beside(hung)("8-0")


def test_a_run_refused_for_another_reason_shows_that_its_cluster_answers() -> None:
    lanes = lanes_of(target("a", "a"), target("b", "b"), target("c", "c"))
    lanes.mute("a", "cluster")
    lanes.ended("a", "plan-refused")
    assert lanes.beside(["b", "c", "b"])("a")


def test_the_only_cluster_keeps_its_threads_while_it_hangs() -> None:
    lanes = lanes_of(*(target(f"t{number}") for number in range(9)))
    lanes.mute("t0", "cluster")
    assert lanes.beside(["t1", "t2", "t3"])("t0")


@pytest.mark.parametrize("code", ["kubeconfig-invalid", "secret-unavailable", "access-denied", "server-pinned"])
def test_a_failure_before_any_answer_doesnt_unmute_a_cluster(code: str) -> None:
    lanes = lanes_of(*(target(f"dead-{number}", "dead") for number in range(9)), target("alive"))
    share = [f"dead-{number}" for number in range(lanes.threads // 4)]
    lanes.ended("dead-8", "cluster-unavailable")
    assert not lanes.beside(share)("dead-8")
    lanes.ended("dead-7", code)
    assert not lanes.beside(share)("dead-8")
    lanes.ended("dead-7", "manifest-invalid")
    assert lanes.beside(share)("dead-8")


def test_one_plan_at_a_time_whatever_its_repository_and_cluster() -> None:
    lanes = lanes_of(target("a", "a", "one.example.com"), target("b", "b", "two.example.com"))
    assert lanes.beside([])("a~1")
    for other in ("a~1", "a~2", "b~1"):
        assert not lanes.beside(["a~1"])(other)
    assert lanes.beside(["a", "b"])("b~1"), "there is room again when it ends"


def test_a_plan_takes_no_place_at_its_cluster_or_git_host_and_needs_none() -> None:
    lanes = lanes_of(*(target(f"a{number}", "a") for number in range(9)), target("b0", "b"))
    full = [f"a{number}" for number in range(THREADS)]
    assert not lanes.beside(full)("a8")
    assert lanes.beside(full)("a0~1"), "its lead's own cluster is full"
    assert lanes.beside(["a0~1", *full[1:]])("a8")
    assert lanes.beside(["a0~1"])("a0"), "its lead is deployed beside it"


@pytest.mark.parametrize(("clusters", "hung"), [(2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6), (8, 7), (9, 7), (30, 7)])
@pytest.mark.parametrize("lane", ["cluster", "host"])
def test_hanging_clusters_or_hosts_below_the_limit_leave_a_thread_free_though_a_plan_hangs_too(clusters: int, hung: int, lane: str) -> None:
    lanes = lanes_of(*(target(f"{number}-{run}", **{lane: f"c{number}"}) for number in range(clusters) for run in range(20)))
    busy = taken(lanes, ["0-0~1"], (f"{number}-{run}" for number in range(hung) for run in range(20)))
    assert len(busy) < lanes.threads
    assert lanes.beside(busy)(f"{clusters - 1}-0")


def test_the_end_of_a_plan_says_nothing_of_its_leads_cluster_and_git_host() -> None:
    lanes = lanes_of(*(target(f"{number}-{run}", f"c{number}", f"h{number}") for number in range(20) for run in range(9)))
    assert lanes.threads == MOST_THREADS
    for code in ("cluster-unavailable", "git-unavailable"):
        lanes.ended("0-0~1", code)
    share = [f"0-{run}" for run in range(2)] + [f"1-{run}" for run in range(2)]
    assert lanes.beside(share)("2-0")
    lanes.mute("0-0", "cluster")
    lanes.mute("1-0", "cluster")
    lanes.ended("0-0~1", "")
    assert not lanes.beside(share)("1-8"), "muted still: a plan's well-being unmutes nothing"
    assert lanes.beside(share)("0-0~2"), "nor does a mute cluster hold up plans"


def test_a_plan_that_hangs_holds_up_the_next_plan_and_no_deployment() -> None:
    released, seen, deployed = threading.Event(), list[str](), threading.Semaphore(0)
    planned = threading.Semaphore(0)

    def run(work: Work) -> None:
        seen.append(work.job.target)
        if not work.job.is_plan:
            deployed.release()
            return
        planned.release()
        assert released.wait(PATIENCE)

    lanes = lanes_of(*(target(f"t{number}") for number in range(20)))
    queue = Inline(run, lanes.threads, lanes)
    queue.start()
    for number in range(1, 9):
        queue.put(Job(f"t0~{number}", "pull-request"))
    assert planned.acquire(timeout=PATIENCE)
    for number in range(20):
        queue.put(Job(f"t{number}", "push"))
    try:
        for _ in range(20):
            assert deployed.acquire(timeout=PATIENCE), "a deployment waits for plans"
        assert [name for name in seen if "~" in name] == ["t0~1"]
        released.set()
        for _ in range(7):
            assert planned.acquire(timeout=PATIENCE)
        assert [name for name in seen if "~" in name] == [f"t0~{number}" for number in range(1, 9)], "in the order of their requests"
    finally:
        released.set()
        assert queue.stop(PATIENCE) == ()


def test_deployments_that_hang_hold_up_no_plan_while_a_thread_is_free() -> None:
    released, begun, planned = threading.Event(), threading.Semaphore(0), threading.Event()

    def run(work: Work) -> None:
        if work.job.is_plan:
            planned.set()
            return
        begun.release()
        assert released.wait(PATIENCE)

    lanes = lanes_of(*(target(f"dead-{number}", "dead") for number in range(20)), target("alive"))
    queue = Inline(run, lanes.threads, lanes)
    queue.start()
    for number in range(20):
        queue.put(Job(f"dead-{number}", "push"))
    for _ in range(THREADS):
        assert begun.acquire(timeout=PATIENCE)
    queue.put(Job("dead-0~1", "pull-request"))
    try:
        assert planned.wait(PATIENCE), "it waits behind its lead's cluster"
    finally:
        released.set()
        assert queue.stop(PATIENCE) == ()
