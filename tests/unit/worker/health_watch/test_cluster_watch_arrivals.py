"""Targets and records that come and go while health is watched: what isn't known is LISTed anew, and the others are judged all the same."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from handler import __version__
from handler.config.settings import Settings, Target
from handler.engine.health.custom_health import CustomHealth, no_expressions
from handler.model.errors import ClusterUnavailable
from handler.model.names import Identity
from handler.model.run_event import unheard
from handler.state.store import StateStore
from handler.worker.health_watch import cluster_watch, scopes, watched_target
from handler.worker.health_watch.cluster_watch import ClusterWatch
from handler.worker.health_watch.watched_target import WatchedTarget
from tests.fakes.objects import FakeObjects
from tests.fakes.worker_parts import remember
from tests.unit.worker.health_watch.watched_objects import API, CLOCK, declaring, live, target
from tests.unit.worker.health_watch.watched_scopes import Discovery

pytestmark = pytest.mark.slow

INTERVAL = 60.0
TURN = 0.5


@dataclass
class Cluster:
    """A cluster whose LISTs take so many `turns`; what comes meanwhile they have passed. Its clock is that of the watch, too."""

    turns: int = 1
    now: float = 1000.0
    objects: FakeObjects = field(default_factory=lambda: FakeObjects(clock=lambda: CLOCK))
    ready: dict[Identity, int] = field(default_factory=dict)
    lists: list[tuple[int, Any, Any, list[WatchedTarget]]] = field(default_factory=list)
    listed: int = 0
    watch: ClusterWatch = field(init=False)

    def __post_init__(self) -> None:
        self.put("shop", API)
        self.watch = self.made()
        self.watch.passed = self.now
        self.watch.watched["anneal-shop"].seen = "unread"

    def made(self) -> ClusterWatch:
        ways: Any = self
        return ClusterWatch(Settings((target(),), health_interval=INTERVAL), ways, [target()], lambda _: None, unheard, threading.Event())

    def put(self, name: str, identity: Identity) -> None:
        """Let a target with a record live, whose one Deployment is ready."""
        self.ready[identity] = 1
        remember(self.objects, declaring(identity, target=name))

    def come(self, number: int) -> str:
        """Let an instance come."""
        name = f"grafana.shop.i{number}"
        self.put(name, Identity("apps", "Deployment", "shop", f"i{number}"))
        self.watch.arrivals.add(target(name))
        return name

    def lose(self, identity: Identity) -> None:
        """Let a Deployment lose its pod; the WATCHes of its kind say so."""
        self.ready[identity] = 0
        owner = next(known for known in self.watch.watched.values() if identity in known.declared)
        for each in self.watch.scopes.followed.values():
            if each.whole and not each.kept:
                self.watch.scopes.lines.put((each.scope, (identity, live(owner, ready=0, identity=identity))))

    def started(self, _api: Any, scope: Any, lines: Any) -> None:
        self.listed += 1
        self.lists.append((self.turns, scope, lines, list(self.watch.watched.values())))

    def turn(self) -> None:
        """Let half a second pass, and the watch have a turn."""
        self.now += TURN
        for left, scope, lines, seen in self.lists:
            if left == 1 and not scope.closed.is_set():
                self._answer(scope, lines, seen)
        self.lists = [(left - 1, *more) for left, *more in self.lists if left > 1]
        self.watch._turn()

    def _answer(self, scope: Any, lines: Any, seen: list[WatchedTarget]) -> None:
        for known in seen:
            for identity in known.declared:
                lines.put((scope, (identity, live(known, ready=self.ready[identity], identity=identity))))
        lines.put((scope, None))

    def health(self, name: str) -> str:
        state = self.brief_store(target(name)).read().state
        assert state
        return state.health.state

    # --- the ways of a watch
    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return CLOCK

    server_time = time

    def expect(self, _request: Any) -> Any:
        raise ClusterUnavailable.of("list", "secrets aren't read here")

    def api(self, _target: Target, *, impersonated: bool = True) -> Any:
        return self

    def discovery(self, _target: Target) -> Any:
        return Discovery()

    def custom_health(self, _target: Target) -> CustomHealth:
        return no_expressions()

    def brief_store(self, of: Target) -> StateStore:
        return StateStore(self.objects, "anneal-system", of.name, "default", f"anneal/v{__version__}")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    for module in (cluster_watch, scopes, watched_target):
        monkeypatch.setattr(module, "time", made)
    monkeypatch.setattr(cluster_watch, "_TURN", 0.001)  # its clock stands still meanwhile: all lines are taken
    monkeypatch.setattr(ClusterWatch, "_explain", lambda *_: None)
    monkeypatch.setattr(scopes, "started", made.started)
    return made


@pytest.mark.parametrize("turns", [1, 3])
def test_an_object_that_degrades_is_told_while_instances_come_with_each_turn(cluster: Cluster, turns: int) -> None:
    cluster.turns = turns
    for number in range(10):
        cluster.turn()
        cluster.come(number)
    assert cluster.health("shop") == "healthy"
    cluster.lose(API)
    for number in range(10, 130):
        cluster.turn()
        cluster.come(number)
    assert cluster.health("shop") == "degraded"


def test_the_first_pass_is_at_once_on_a_machine_that_has_just_started(cluster: Cluster) -> None:
    cluster.now, cluster.watch = 0.0, cluster.made()
    cluster.turn()
    assert cluster.watch.passed == TURN


def test_the_lists_that_instances_ask_for_are_few_however_many_come(cluster: Cluster) -> None:
    for number in range(120):
        cluster.turn()
        cluster.come(number)
    assert 2 < cluster.listed < 20


def test_an_instance_that_comes_is_judged_by_a_list_from_after_it_came(cluster: Cluster) -> None:
    for _ in range(5):
        cluster.turn()
    names = [cluster.come(0)]
    for _ in range(3):
        cluster.turn()
    assert cluster.listed == 2, "the first of them asks for a LIST at once"
    names.append(cluster.come(1))
    for _ in range(30):
        cluster.turn()
        assert {cluster.health(name) for name in names} == {"healthy"}, "what wasn't looked for isn't missing"
    names.append(cluster.come(2))
    cluster.ready = dict.fromkeys(cluster.ready, 0)
    for _ in range(60):
        cluster.turn()
    assert [cluster.health(name) for name in names] == ["degraded", "degraded", "progressing"], "as the LIST has shown them"


def test_an_instance_that_comes_during_a_list_is_judged_by_the_next_one(cluster: Cluster) -> None:
    cluster.turns = 20  # longer than newcomers wait for each other
    for _ in range(30):
        cluster.turn()
    names = [cluster.come(0)]
    for _ in range(5):
        cluster.turn()
    names.append(cluster.come(1))
    for _ in range(100):
        cluster.turn()
        assert {cluster.health(name) for name in names} == {"healthy"}
    assert cluster.listed == 3
    assert not cluster.watch.arrivals.joined


RECORD = Identity("", "ConfigMap", "anneal-system", "anneal-shop")


@pytest.mark.parametrize("beside", [True, False], ids=["another-keeps-the-watch", "the-watch-ends"])
def test_a_target_whose_record_is_deleted_and_written_anew_is_judged_as_it_lives(cluster: Cluster, beside: bool) -> None:
    if beside:
        cluster.come(0)
    for _ in range(30):
        cluster.turn()
    cluster.watch._record_moved(RECORD, None)
    for _ in range(130):
        cluster.turn()  # a pass among them
    if not beside:
        cluster.ready[API] = 0  # it passes no look meanwhile
    cluster.watch.watched["anneal-shop"].seen = "anew"
    for _ in range(130):
        cluster.turn()
    assert cluster.health("shop") == ("healthy" if beside else "progressing")
