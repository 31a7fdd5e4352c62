"""`dependsOn` over two repositories: what is new waits until the other has what git says; what was begun is finished whatever comes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.app.build import Handler
from handler.config.git_settings import Repository
from handler.config.settings import Cluster, Settings, Target
from handler.engine.run.errors import DependencyNotReady
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.result import Outcome, Result
from handler.state.record import State
from tests.fakes.apiserver import ApiServer, Call, FakeConnection
from tests.fakes.apiserver.connection import Reply, Way, straight
from tests.fakes.apiserver.server import KUBE_SYSTEM, Asked
from tests.fakes.engine import SHOP, cluster, engine, state_of
from tests.fakes.git_host import GitHost, HostSource
from tests.unit.engine.killed_runs import Death, Killed
from tests.unit.engine.two_targets import document

pytestmark = pytest.mark.slow

INFRA = Target("infra", Repository("https://git.example.com/acme/infra.git"), ("shop",), path="infra")
APPS = Target("apps", SHOP, ("shop",), path="apps", depends_on=("infra",))
DONE = (Outcome.APPLIED, Outcome.UNCHANGED)


class Ordered:
    """Two targets, each with an object of its own in versions, on one cluster or on one each."""

    def __init__(self, second: ApiServer | None = None) -> None:
        server = cluster()
        self.servers = {"apps": server, "infra": second or server}
        self.hosts = {"infra": GitHost(), "apps": GitHost()}
        self.targets = (replace(INFRA, cluster=Cluster(context="infra")) if second else INFRA, APPS)
        self.way: Way = straight
        self.handler = self.restarted()

    def restarted(self) -> Handler:
        made = engine(self.servers["apps"], self.hosts["apps"], Settings(targets=self.targets), fetched=True)
        sources: dict[str, Any] = {name: HostSource(host, lambda _asked: None) for name, host in self.hosts.items()}
        made.git_host = lambda target: sources[target.name]  # type: ignore[method-assign]  # the seam
        connections = {name: FakeConnection(server, self._meet) for name, server in self.servers.items()}
        made._connection = lambda target: connections[target.name]  # type: ignore[method-assign]  # the seam
        return made

    def _meet(self, call: Call, do: Callable[[], Reply]) -> Reply:
        return self.way(call, do)

    def push(self, name: str, version: str) -> str:
        host = self.hosts[name]
        sha = host.commit({f"{name}/own.json": document(name, version)})
        host.push(sha)
        return sha

    def run(self, name: str, trigger: str = "push") -> Result:
        return self.handler.run(Job(name, trigger))

    def applied(self, *names: str) -> None:
        for name in names:
            result = self.run(name, "tick")
            assert result.outcome in DONE, result

    def waits(self, *words: str) -> None:
        """`apps` waits, and says why and what helps."""
        result = self.run("apps", "tick")
        assert (result.outcome, result.code) == (Outcome.WAITING, DependencyNotReady.code), result
        assert all(word in str(result.problems[0]) for word in words), result.problems

    def version(self, name: str) -> str:
        live = self.servers[name].store.get(Identity("", "ConfigMap", "shop", name))
        return str(live.body["data"]["key"]) if live else ""

    def state(self) -> State:
        return state_of(self.handler, "apps")

    def killed(self, number: int) -> bool:
        """Let a run of `apps` die right after its write with this number; False: it had ended before."""
        self.way = death = Death(number, done=True)
        with contextlib.suppress(Killed):
            self.run("apps", "tick")
        self.way = straight
        lease = "/apis/coordination.k8s.io/v1/namespaces/anneal-system/leases/anneal-apps"
        self.servers["apps"].answer(Asked("DELETE", lease, {}, {}, "", ""))
        self.handler = self.restarted()
        return death.dead


@pytest.fixture
def ordered() -> Ordered:
    return Ordered()


def test_a_first_deploy_goes_in_order_and_waiting_is_recorded_once(ordered: Ordered) -> None:
    ordered.push("infra", "1")
    sha = ordered.push("apps", "1")
    ordered.waits("never ran", "anneal apply infra")
    state, version = ordered.state(), ordered.servers["apps"].store.revision
    assert state.awaits
    assert (state.awaits.commit, state.attempt, state.status.phase, state.commit) == (sha, None, "waiting", "")
    ordered.waits()
    assert (ordered.servers["apps"].store.revision, ordered.version("apps")) == (version, ""), "nothing differs, so nothing is written"
    ordered.applied("infra", "apps")
    state = ordered.state()
    assert (state.awaits, state.status.phase, state.commit, ordered.version("apps")) == (None, "applied", sha, "1")
    assert [run.outcome for run in state.history] == ["applied", "waiting"]


def test_a_dry_run_plans_on_and_notes_what_a_run_would_wait_for(ordered: Ordered) -> None:
    ordered.push("apps", "1")
    for name, notes in (("", ("a run would wait for infra: it never ran; anneal apply infra",)), ("infra", ())):
        if name:
            ordered.push(name, "1")
            ordered.applied(name)
        result = ordered.handler.run(Job("apps", "oneoff", dry_run=True, force=True))
        assert result.plan
        assert (result.counts, result.plan.notes) == ({"to create": 1}, notes)


def test_a_dependency_on_another_cluster_comes_first() -> None:
    second = cluster()
    second.store.get(KUBE_SYSTEM).body["metadata"]["uid"] = "another-cluster"  # type: ignore[union-attr]  # it is always there
    ordered = Ordered(second)
    for name in ("infra", "apps"):
        ordered.push(name, "1")
    ordered.waits("never ran")
    ordered.applied("infra", "apps")
    assert (ordered.version("infra"), ordered.version("apps")) == ("1", "1")
    assert ordered.servers["apps"].store.get(Identity("", "ConfigMap", "shop", "infra")) is None, "it lives on its own cluster alone"


def test_a_run_killed_at_any_write_of_a_wait_or_after_it_is_gone_on_with(ordered: Ordered) -> None:
    ordered.push("infra", "0")
    ordered.applied("infra")
    number, killed = 0, True
    while killed:
        number += 1
        ordered.push("infra", str(number))
        ordered.push("apps", str(number))
        ordered.killed(1)  # the first write says that it waits
        ordered.waits()
        ordered.applied("infra")
        killed = ordered.killed(number)
        ordered.push("infra", f"{number} more")  # it isn't ready by now, and what was begun is finished all the same
        begun = ordered.state().attempt is not None
        result = ordered.run("apps", "tick")
        assert result.outcome in DONE if begun or not killed else result.outcome in (*DONE, Outcome.WAITING), result
        ordered.applied("infra", "apps")
        assert (ordered.version("apps"), ordered.state().awaits) == (str(number), None)
    assert number > 2


def test_what_overtakes_a_killed_run_waits_and_what_was_begun_is_finished(ordered: Ordered) -> None:
    for name in ("infra", "apps"):
        ordered.push(name, "1")
        ordered.applied(name)
    begun, number = "", 0
    while not begun:  # until a run dies that has opened its attempt
        number += 1
        sha = ordered.push("apps", f"2-{number}")
        assert ordered.killed(number)
        begun = sha if ordered.state().attempt else ""
    ordered.push("infra", "2")
    waits = ordered.push("apps", "3")
    ordered.applied("apps")
    assert (ordered.state().commit, ordered.state().attempt, ordered.version("apps")) == (begun, None, f"2-{number}")
    ordered.waits("git is at")
    state = ordered.state()
    assert state.awaits
    assert (state.awaits.commit, state.status.phase) == (waits, "waiting")
    ordered.applied("infra", "apps")
    assert (ordered.version("apps"), ordered.state().attempt, ordered.state().awaits) == ("3", None, None)
