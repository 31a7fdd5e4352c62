"""One look at many targets: what is asked and how often, that nothing waits for what hangs, and that what is in trouble is read whole."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from handler import __version__
from handler.app.connections import Connections
from handler.app.overview import EXPLAINED, SCANNED, Overview
from handler.app.target_row import Level, TargetRow
from handler.config.git_settings import Repository, SecretRef, directory_url
from handler.config.settings import Cluster, Settings, Target
from handler.model.errors import AccessDenied, ClusterUnavailable, GitUnavailable
from handler.model.names import state_name
from handler.model.refs import Head
from handler.model.tree import CommitInfo
from handler.state.configmap import SUMMARY
from handler.state.heartbeat import Heartbeat, Pulse, Signs
from handler.state.lease import LeaseLock
from handler.state.record import RunStatus, State, TargetHealth
from handler.state.record_format import stamp
from handler.state.store import StateStore
from tests.fakes.objects import FakeObjects
from tests.fakes.worker_parts import remember
from tests.patience import PATIENCE, until
from tests.unit.state.samples import blank, sha

pytestmark = pytest.mark.slow

NOW = 1_900_000_000.0
EAST, WEST = Cluster(SecretRef(file="east")), Cluster(SecretRef(file="west"))
SHOP, BANK = "https://git.example.com/acme/shop.git", "https://bank.example.com/acme/bank.git"
SHORT = 0.3
"""Seconds that what never answers has, by a clock that stands still until all else has answered."""


def target(name: str, cluster: Cluster = EAST, url: str = SHOP) -> Target:
    return Target(name, Repository(url), ("shop",), cluster=cluster)


def state(name: str, **parts: Any) -> State:
    well = TargetHealth("healthy", stamp(NOW), stamp(NOW), (), ())
    return blank(**({"target": name, "commit": sha("a"), "status": RunStatus("applied"), "health": well} | parts))


@dataclass
class Ways:
    """Clusters in memory and git hosts that show the scripted `heads`; what is in `mute` never answers."""

    clusters: dict[Cluster, FakeObjects]
    heads: dict[str, str] = field(default_factory=dict)
    mute: set[Any] = field(default_factory=set)
    asked: Counter[str] = field(default_factory=Counter)
    never: threading.Event = field(default_factory=threading.Event)
    hung: set[Any] = field(default_factory=set)
    now: float = 0.0
    end: float = field(default_factory=lambda: time.monotonic() + PATIENCE)
    living: dict[str, int] = field(default_factory=dict)

    def members(self, target: Target) -> int | None:
        self.asked["members"] += 1
        if target.name in self.mute:
            raise ClusterUnavailable.of("cluster", "no answer")
        return self.living.get(target.name, 0)

    def _answers(self, what: str, place: Any) -> None:
        self.asked[what] += 1
        if place in self.mute:
            self.hung.add(place)
            self.never.wait()

    def records(self, target: Target) -> FakeObjects:
        self._answers("list", target.cluster)
        return self.clusters[target.cluster]

    def cluster_uid(self, _target: Target) -> str:
        return "u-1"

    def pulse(self, target: Target) -> Pulse:
        return Heartbeat(self.clusters[target.cluster], "anneal-system", "default").read()

    def brief_store(self, target: Target) -> StateStore:
        self._answers("record", target.name)
        return StateStore(self.clusters[target.cluster], "anneal-system", target.name, "default", f"anneal/v{__version__}")

    def lock(self, target: Target) -> LeaseLock:
        return LeaseLock(self.clusters[target.cluster], "anneal-system", state_name(target.name), "us")

    def head(self, target: Target, since: float) -> Head:
        self._answers("head", target.repository.url)
        found = self.heads.get(target.repository.url)
        if not found:
            raise GitUnavailable.of(target.repository.url, "its host refuses connections")
        return Head(found)

    def commit(self, _target: Target, sha: str) -> CommitInfo | None:
        self.asked["commit"] += 1
        return CommitInfo(sha, "Newer", "ann", int(NOW))


class Look(Overview):
    """The real one, whose deadline comes as soon as nothing is open but what hangs."""

    def _take(self, seconds: float) -> None:
        super()._take(seconds)
        ways = cast(Ways, self._ways)
        places = [key[-1][0] if isinstance(key[-1], tuple) else key[-1] for key in cast(set[tuple[Any, ...]], self._open)]
        assert time.monotonic() < ways.end, f"what answers is held up: {places}"
        if ways.hung.issuperset(places):
            ways.now += SHORT


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ways]:
    made = Ways({EAST: FakeObjects(clock=lambda: NOW), WEST: FakeObjects(clock=lambda: NOW)}, {SHOP: sha("a"), BANK: sha("b")})
    monkeypatch.setattr("handler.app.overview.time", SimpleNamespace(time=time.time, monotonic=lambda: made.now))
    yield made
    made.never.set()


def looks_at(ways: Ways, targets: Sequence[Target], **about: Any) -> Look:
    return Look(Settings(tuple(targets)), cast(Connections, ways), deadline=SHORT, **about)


def overview(ways: Ways, *targets: Target, **about: Any) -> dict[str, TargetRow]:
    found = looks_at(ways, targets, **about).look(targets)
    assert [row.level for row in found] == sorted(row.level for row in found), "the worst first"
    return {row.target.name: row for row in found}


def test_a_hundred_targets_are_one_list_and_one_question_to_git(ways: Ways) -> None:
    names = [f"shop-{number}" for number in range(100)]
    for name in names:
        remember(ways.clusters[EAST], state(name))
    found = overview(ways, *map(target, names))
    assert ways.asked == {"list": 1, "head": 1}
    assert {row.level for row in found.values()} == {Level.WELL}
    assert (found["shop-7"].phase, found["shop-7"].summary.commit, found["shop-7"].is_behind) == ("applied", sha("a"), False)


def test_what_git_has_beyond_what_is_applied_is_asked_once_a_repository(ways: Ways) -> None:
    for name in ("one", "two"):
        remember(ways.clusters[EAST], state(name, repository=BANK))
    Heartbeat(ways.clusters[EAST], "anneal-system", "default").renew(Signs("s", "1", {"one": 0.0, "two": 0.0}))
    found = overview(ways, target("one", url=BANK), target("two", url=BANK))
    assert ways.asked == {"list": 1, "head": 1, "commit": 1}
    assert [(row.is_behind, row.newest and row.newest.info) for row in found.values()] == [
        (True, CommitInfo(sha("b"), "Newer", "ann", int(NOW)))
    ] * 2


def test_offline_no_git_host_is_asked(ways: Ways) -> None:
    remember(ways.clusters[EAST], state("one"))
    assert overview(ways, target("one"), asks=False)["one"].newest is None
    assert ways.asked == {"list": 1}


def test_a_cluster_and_a_git_host_that_hang_delay_nothing_else_and_cost_one_look(ways: Ways) -> None:
    remember(ways.clusters[EAST], state("near"))
    remember(ways.clusters[EAST], state("deaf", repository=BANK))
    ways.mute = {WEST, BANK}
    far = [target(f"far-{number}", WEST) for number in range(9)]
    found = overview(ways, target("near"), target("deaf", url=BANK), *far)
    assert ways.asked == {"list": 2, "head": 2}
    assert (found["near"].level, found["near"].newest and found["near"].newest.commit) == (Level.WELL, sha("a"))
    assert found["deaf"].level is Level.UNFOLLOWED
    assert str(found["deaf"].newest.trouble) == f"{BANK}: its host hasn't answered within {SHORT:g} s"  # type: ignore[union-attr]  # it was asked
    assert {str(found[each.name].trouble) for each in far} == {f"cluster kubeconfig west: hasn't answered within {SHORT:g} s"}


def test_a_hanging_cluster_isnt_asked_twice_and_its_late_answer_counts(ways: Ways) -> None:
    remember(ways.clusters[WEST], state("far"))
    ways.mute = {WEST}
    far = [target("far", WEST)]
    looks = looks_at(ways, far, asks=False)
    assert looks.look(far)[0].level is Level.UNREAD
    assert looks.look(far)[0].level is Level.UNREAD
    assert ways.asked["list"] == 1
    ways.never.set()
    until(lambda: not looks._news.empty())
    (row,) = looks.look(far)
    assert (row.trouble, row.phase) == (None, "applied")


def test_the_first_in_trouble_are_read_whole_and_no_more(ways: Ways) -> None:
    names = [f"bad-{number:02}" for number in range(EXPLAINED + 5)]
    for name in names:
        remember(ways.clusters[EAST], state(name, status=RunStatus("failed", message="no", who="author")))
    found = overview(ways, *map(target, names))
    assert ways.asked["record"] == EXPLAINED
    assert [row.target.name for row in found.values() if row.whole] == names[:EXPLAINED]
    assert found["bad-00"].state.status.message == "no"  # type: ignore[union-attr]  # it was read


def test_a_record_that_hangs_leaves_what_its_summary_says(ways: Ways) -> None:
    remember(ways.clusters[EAST], state("bad", status=RunStatus("failed")))
    ways.mute = {"bad"}
    found = overview(ways, target("bad"))["bad"]
    assert (found.level, found.whole) == (Level.FAILED, False)


def test_a_summary_that_cant_be_read_or_is_of_another_repository_is_read_whole(ways: Ways) -> None:
    objects = ways.clusters[EAST]
    remember(objects, state("odd"))
    remember(objects, state("moved", repository=BANK))
    body = objects.get("ConfigMap", "anneal-system", state_name("odd"))
    assert body
    body["metadata"]["annotations"][SUMMARY] = '{"of": "a later version"}'
    objects.replace(body)
    found = overview(ways, target("odd"), target("moved"), target("new"))
    assert (found["odd"].level, found["odd"].summary.commit) == (Level.WELL, sha("a"))
    assert found["moved"].trouble
    assert found["moved"].trouble.code == "target-moved"
    assert (found["new"].phase, found["new"].level) == ("never-ran", Level.OFF)


def test_members_are_looked_for_of_the_first_targets_without_a_record_once(ways: Ways) -> None:
    remember(ways.clusters[EAST], state("one"))
    names = [target(name) for name in ("one", "a", "b", "c", "d")]
    ways.mute = {"b"}
    looks = looks_at(ways, names, asks=False)
    ways.living = {"a": 7}
    for _ in range(2):
        found = {row.target.name: row for row in looks.look(names)}
    phases = [found[name].phase for name in ("one", "a", "b", "c", "d")]
    assert phases == ["applied", "record-missing", "no-record", "never-ran", "no-record"], "only what was seen to have none never ran"
    assert ways.asked["members"] == SCANNED


def test_without_the_right_to_list_each_record_is_read_by_name(ways: Ways) -> None:
    objects = ways.clusters[EAST]
    remember(objects, state("one"))

    def denying(verb: str, _body: Any) -> None:
        if verb == "list":
            raise AccessDenied.of("configmaps", "may not be listed")

    objects.before = denying
    found = overview(ways, target("one"), target("new"))
    assert (found["one"].phase, found["new"].phase) == ("applied", "never-ran")
    assert ways.asked["record"] == 2


def test_health_that_isnt_watched_any_more_is_unknown_and_ages_are_the_servers(ways: Ways) -> None:
    old = TargetHealth("healthy", stamp(NOW - 86400), stamp(NOW - 86400), (), ())
    remember(ways.clusters[EAST], state("one", health=old))
    lease = Heartbeat(ways.clusters[EAST], "anneal-system", "default")
    lease.renew(Signs("blind", "1", {"one": 5.0}))
    found = overview(ways, target("one"))["one"]
    assert (found.now, found.summary.health, found.is_served, found.pulse.looked("one")) == (NOW, "unknown", True, NOW - 5)
    lease.renew(Signs("blind", "1", {"one": 5.0}, (0.0, 180.0)))
    assert overview(ways, target("one"))["one"].summary.health == "healthy"


def test_what_is_known_so_far_is_shown_while_others_are_waited_for(ways: Ways) -> None:
    remember(ways.clusters[EAST], state("near"))
    ways.mute = {WEST}
    shown: list[dict[str, str]] = []
    both = (target("near"), target("far", WEST))
    looks_at(ways, both, asks=False).look(both, lambda rows: shown.append({row.target.name: row.phase for row in rows}))
    assert shown[-1] == {"near": "applied", "far": "asking"}


def test_an_unexpected_exception_is_one_clusters_trouble(ways: Ways) -> None:
    remember(ways.clusters[EAST], state("near"))
    ways.clusters.pop(WEST)
    found = overview(ways, target("near"), target("far", WEST), asks=False)
    assert found["near"].level is Level.WELL
    assert str(found["far"].trouble) == "anneal: internal error: KeyError"


def test_a_target_of_a_local_directory_needs_no_server(ways: Ways) -> None:
    Heartbeat(ways.clusters[EAST], "anneal-system", "default").renew(Signs("one", "1.2.3", {"other": 0.0}))
    made = replace(target("local"), repository=Repository(directory_url("local")))
    remember(ways.clusters[EAST], replace(state("local"), repository=directory_url("local")))
    row = overview(ways, made)["local"]
    assert (row.is_served, row.level) == (None, Level.WELL)
    assert ways.asked["head"] == 0


def test_what_is_found_too_late_of_a_target_that_is_looked_at_no_more_is_dropped(ways: Ways) -> None:
    both = [target("gone", WEST), target("far", WEST)]
    for each in both:
        remember(ways.clusters[WEST], state(each.name, status=RunStatus("failed")))
    ways.mute = {"gone"}
    looks = looks_at(ways, both, asks=False)
    assert [row.whole for row in looks.look(both) if row.target.name == "gone"] == [False]
    left = looks.look(both[1:])
    ways.never.set()
    until(lambda: not looks._news.empty())
    assert [row.target.name for row in looks.look(both[1:])] == ["far"] == [row.target.name for row in left]


def test_a_cluster_s_late_answer_says_nothing_of_targets_that_are_looked_at_no_more(ways: Ways) -> None:
    both = [target("gone", WEST), target("far", WEST)]
    remember(ways.clusters[WEST], state("far"))
    ways.mute = {WEST}
    looks = looks_at(ways, both, asks=False)
    looks.look(both)
    looks.look(both[1:])
    ways.never.set()
    until(lambda: not looks._news.empty())
    assert [(row.target.name, row.phase) for row in looks.look(both[1:])] == [("far", "applied")]
