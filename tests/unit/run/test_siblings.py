"""Which targets are siblings: of one repository, revision and cluster, however each reaches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import urllib3

from tests.fakes.apiserver import ApiServer, FakeConnection
from tests.fakes.apiserver.connection import Call, Reply
from tests.fakes.apiserver.server import KUBE_SYSTEM
from tests.fakes.engine import cluster
from tests.unit.run.two_targets import A, B, Bench, X, document


def unreachable(call: Call, do: Callable[[], Reply]) -> Reply:
    raise urllib3.exceptions.ProtocolError("connection refused")


def test_a_target_of_another_revision_is_no_sibling_and_the_commands_are_told(bench: Bench) -> None:
    bench.configure(b={"revision": replace(B.revision, branch="next")})
    bench.push(b={"x": document("x")})
    refused = bench.run("b")
    told = str(refused.problems[0])
    assert "belongs to target a, which isn't of this repository, revision, cluster and installation" in told
    assert "`anneal suspend a`" in told
    assert "`kubectl label ConfigMap/x -n shop applyset.kubernetes.io/part-of-`" in told
    assert "`kubectl annotate ConfigMap/x -n shop anneal.dev/identity-`" in told
    bench.applied("a")
    assert bench.live() is None


def two_clusters(second: ApiServer) -> Bench:
    """Return a bench whose b reaches its cluster in another way than a."""
    bench = Bench((A, replace(B, cluster=replace(B.cluster, context="other"))))
    ways = {A.cluster: FakeConnection(bench.server, bench._way), bench.targets[1].cluster: FakeConnection(second, bench._way)}
    bench.handler._connection = lambda target: ways[target.cluster]  # type: ignore[method-assign]  # the seam
    return bench


def test_targets_on_different_clusters_are_no_siblings() -> None:
    """Both declare the same names, each on its own cluster: what one drops goes there, whatever the other says."""
    second = cluster()
    second.store.get(KUBE_SYSTEM).body["metadata"]["uid"] = "another-cluster"  # type: ignore[union-attr]  # it is always there
    bench = two_clusters(second)
    bench.push(a={"x": document("x")}, b={"x": document("x")})
    bench.applied("a", "b")
    bench.push(b={"x": document("x")})
    bench.applied("a", "b")
    assert (bench.live(), second.store.get(X) is not None) == (None, True)


def test_two_ways_to_one_cluster_lead_to_siblings() -> None:
    server = cluster()
    bench = two_clusters(server)
    bench.server = server
    bench.handler._connection = lambda target: FakeConnection(server, bench._way)  # type: ignore[method-assign]  # the seam
    bench.push(a={"x": document("x")})
    bench.applied("a", "b")
    bench.push(b={"x": document("x")})
    bench.applied("a", "b")
    assert bench.owner() == "b"


def test_a_cluster_that_does_not_answer_is_another_one_unless_the_record_lies_here() -> None:
    """A fleet of clusters goes on pruning while one of them is down."""
    second = cluster()
    bench = two_clusters(second)
    bench.push(a={"x": document("x")}, b={"x": document("x")})
    bench.applied("a")
    bench.push(b={"x": document("x")})
    way = bench.handler._connection
    silent = FakeConnection(second, unreachable)
    bench.handler._connection = lambda target: way(target) if target.name == "a" else silent  # type: ignore[method-assign]  # the seam
    bench.applied("a")
    assert bench.live() is None
