"""A server's heartbeat: one write a cluster, soon after its start and then again and again, whatever goes wrong with it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from handler.config.git_settings import Repository, SecretRef
from handler.config.settings import Cluster, Settings, Target
from handler.model.errors import AccessDenied, ClusterUnavailable
from handler.state.heartbeat import Beat, Heartbeat
from handler.worker import heartbeat_renewal
from handler.worker.heartbeat_renewal import HeartbeatRenewal, server_name
from tests.fakes.objects import FakeObjects
from tests.patience import until

pytestmark = pytest.mark.slow

EAST, WEST = Cluster(SecretRef(file="east")), Cluster(SecretRef(file="west"))
NOW = 1_900_000_000.0


EASTERN, WESTERN, NORTHERN = "kubeconfig east", "kubeconfig west", "kubeconfig north"
"""What metrics call them."""


def settings(health_interval: float = 0.0, *clusters: Cluster) -> Settings:
    targets = tuple(
        Target(f"t{number}", Repository("u"), ("a",), cluster=each) for number, each in enumerate(clusters or (EAST, EAST, WEST))
    )
    return Settings(targets, health_interval=health_interval)


class Clusters:
    """Two clusters in memory, and which renewals of their heartbeats were reported."""

    def __init__(self) -> None:
        self.of = {EAST: FakeObjects(clock=lambda: NOW), WEST: FakeObjects(clock=lambda: NOW)}
        self.errors: dict[Cluster, Exception] = {}
        self.never = threading.Event()
        self.mute: set[Cluster] = set()
        self.renewed: list[tuple[str, float]] = []
        self.hearts: list[HeartbeatRenewal] = []

    def records(self, target: Target) -> FakeObjects:
        if target.cluster in self.mute:
            self.never.wait()
        if target.cluster in self.errors:
            raise self.errors[target.cluster]
        return self.of[target.cluster]

    def begin(self, known: Settings) -> HeartbeatRenewal:
        made = HeartbeatRenewal(known, self.records, lambda *line: self.renewed.append(line))
        self.hearts.append(made)
        made.start()
        return made

    def lease(self, cluster: Cluster) -> Heartbeat:
        return Heartbeat(self.of[cluster], "anneal-system", "default")


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clusters]:
    made = Clusters()
    monkeypatch.setattr(heartbeat_renewal, "EVERY", 0.02)
    yield made
    made.never.set()
    for each in made.hearts:
        each.stop()


def test_each_cluster_is_told_at_once_who_runs_and_of_its_own_targets_when_they_were_looked_at(clusters: Clusters) -> None:
    beating = clusters.begin(settings())
    until(lambda: clusters.lease(EAST).read().server("t0") and clusters.lease(WEST).read().server("t2"))
    assert set(clusters.lease(EAST).read().targets) == {"t0", "t1"}
    assert clusters.lease(EAST).read().looked("t0") == 0
    beating.looked("t0")
    until(lambda: clusters.lease(EAST).read().looked("t0"))
    found = clusters.lease(EAST).read()
    assert (found.looked("t1"), found.watched) == (0, None)
    assert found.last
    assert found.last.name == server_name()


def test_two_ways_to_one_cluster_are_one_server_that_looks_after_the_targets_of_both(clusters: Clusters) -> None:
    clusters.of[WEST] = clusters.of[EAST]
    beating = clusters.begin(settings())
    until(lambda: set(clusters.lease(EAST).read().targets) == {"t0", "t1", "t2"})
    for name, other in (("t0", "t2"), ("t2", "t1")):
        beating.looked(name)
        until(lambda name=name: clusters.lease(EAST).read().looked(name))  # type: ignore[misc]  # bound at once
        assert clusters.lease(EAST).read().server(other)


def test_health_is_vouched_for_by_both_ways_to_a_cluster_or_by_none(clusters: Clusters) -> None:
    clusters.of[WEST] = clusters.of[EAST]
    known = settings(3600.0)
    beating = clusters.begin(known)
    until(lambda: set(clusters.lease(EAST).read().targets) == {"t0", "t1", "t2"})
    beating.watched(known.targets[0])
    beating.looked("t0")
    until(lambda: clusters.lease(EAST).read().looked("t0"))
    assert clusters.lease(EAST).read().watched is None
    beating.watched(known.targets[2])
    until(lambda: clusters.lease(EAST).read().watched)


def test_health_is_vouched_for_as_soon_as_it_is_watched_and_for_three_intervals(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat_renewal, "EVERY", 3600.0)
    known = settings(3600.0)
    beating = clusters.begin(known)
    until(lambda: clusters.lease(EAST).read().last)
    assert clusters.lease(EAST).read().watched is None
    beating.watched(known.targets[0])
    until(lambda: clusters.lease(EAST).read().watched)
    watched = clusters.lease(EAST).read().watched
    assert watched == Beat(watched.renewed, 3 * 3600.0)  # type: ignore[union-attr]  # as it was waited for
    assert clusters.lease(WEST).read().watched is None


def test_a_cluster_that_hangs_or_refuses_delays_no_other_and_is_told_once(clusters: Clusters, caplog: pytest.LogCaptureFixture) -> None:
    clusters.mute = {WEST}
    clusters.errors[EAST] = AccessDenied.of("Lease", "may not be created")
    north = Cluster(SecretRef(file="north"))
    clusters.of[north] = FakeObjects(clock=lambda: NOW)
    with caplog.at_level(logging.WARNING, "anneal.heartbeat"):
        clusters.begin(settings(0.0, EAST, WEST, north))
        until(lambda: sum(name == NORTHERN and at > 0 for name, at in clusters.renewed) > 5)
        assert [record.message for record in caplog.records] == ["the heartbeat can't be renewed"]
        clusters.errors[EAST] = ClusterUnavailable.of("Lease", "gone")
        until(lambda: len(caplog.records) == 2)
        clusters.errors.clear()
        until(lambda: clusters.lease(EAST).read().last)
    told = dict(clusters.renewed)
    assert told[WESTERN] == 0.0, "shown as never renewed"
    assert told[EASTERN] > 0


def test_a_first_look_is_told_at_once_and_the_end_too(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat_renewal, "EVERY", 3600.0)
    monkeypatch.setattr(heartbeat_renewal, "_PAUSE", 0.02)
    beating = clusters.begin(settings())
    until(lambda: clusters.lease(EAST).read().server("t0"))
    beating.looked("t0")
    until(lambda: clusters.lease(EAST).read().looked("t0"))
    beating.stop()
    beating.join()
    found = clusters.lease(EAST).read()
    assert (found.server("t0"), found.last and found.last.ended) == (None, True)


def test_a_cluster_that_hangs_keeps_no_server_from_its_end(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat_renewal, "_LAST", 0.1)
    clusters.mute = {WEST}
    beating = clusters.begin(settings())
    until(lambda: clusters.lease(EAST).read().last)
    beating.stop()
    beating.join()
    until(lambda: (last := clusters.lease(EAST).read().last) and last.ended)


def test_a_mistake_of_ours_ends_no_heartbeat(clusters: Clusters) -> None:
    clusters.errors[EAST] = ValueError("nobody foresaw this")
    clusters.begin(settings())
    until(lambda: any(name == WESTERN and at > 0 for name, at in clusters.renewed))
    clusters.errors.clear()
    until(lambda: clusters.lease(EAST).read().last)
