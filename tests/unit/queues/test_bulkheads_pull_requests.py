"""Plans of pull requests beside deployments: one at a time, which takes no deployment's place and waits for none."""

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


def lanes_of(*targets: Target) -> Bulkheads:
    return Bulkheads(Settings(targets))


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
def test_a_plan_that_hangs_beside_hanging_clusters_or_hosts_leaves_a_thread_free(clusters: int, hung: int, lane: str) -> None:
    lanes = lanes_of(*(target(f"{number}-{run}", **{lane: f"c{number}"}) for number in range(clusters) for run in range(20)))
    busy = ["0-0~1"]
    for name in (f"{number}-{run}" for number in range(hung) for run in range(20)):
        if lanes.beside(busy)(name):
            busy.append(name)
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
