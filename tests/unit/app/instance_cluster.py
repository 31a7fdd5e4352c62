"""A cluster in memory with one instance's object, and its record, for tests of the writer of statuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.app.instance_statuses import InstanceStatuses
from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.config.git_settings import Repository
from handler.config.instance_target import InstanceTarget, instance_target
from handler.config.settings import Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.event import Job
from handler.model.instance import Instance
from handler.model.names import Identity, Resource
from handler.model.result import Outcome, Result
from handler.model.run_event import RunEnded, RunPhase
from handler.state.record import RunStatus, State
from tests.fakes.apiserver import ApiServer, Call, FakeConnection
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.kinds import SERVED, VERBS, Served
from tests.fakes.apiserver.server import Asked
from tests.patience import PATIENCE

NOW, NOON = 1_772_366_400.0, "2026-03-01T12:00:00Z"
COMMIT = "a" * 40
WIDGET = Identity("example.com", "Widget", "default", "a")
NAME = "grafana.default.a"
PATH = "/apis/example.com/v1/namespaces/default/widgets/a"
TEMPLATE = Target(
    "grafana",
    Repository("https://git.example.com/grafana.git"),
    ("default",),
    trigger=TriggerSettings(ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),))),
)


def served(*, status: bool) -> Sequence[Served]:
    widgets = Resource("example.com", "v1", "Widget", "widgets", True, VERBS, status)
    return (*SERVED, Served(widgets, frozenset({"spec", "status"})))


def applied(**parts: Any) -> State:
    return replace(State(NAME, "default", "cluster", commit=COMMIT, status=RunStatus("applied")), **parts)


@dataclass
class Cluster:
    """A cluster with one object, whose record is `state`; what is sent is in `calls`. `way` does what `connection.Way` does."""

    has_status: bool = True
    state: State | None = field(default_factory=applied)
    way: Callable[[Call, Callable[[], Reply]], Reply] = lambda _call, do: do()
    calls: list[Asked] = field(default_factory=list)
    reads: int = 0
    instances: dict[str, InstanceTarget] = field(default_factory=dict)
    identities: set[bool] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.server = ApiServer(lambda: NOW, served(status=self.has_status))
        self.api = Api(FakeConnection(self.server, self._on_its_way), deadline=1.0)
        self.found = Discovery(Api(FakeConnection(self.server)))
        self.create()

    def _on_its_way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        self.calls.append(call.asked)
        return self.way(call, do)

    def create(self, **more: Any) -> None:
        metadata = {"name": "a", "namespace": "default", "generation": 3}
        body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": 1}, **more}
        live = self.server.must(Asked("POST", PATH.rpartition("/")[0], {}, body, "", ""))
        self.instances[NAME] = instance_target(TEMPLATE, Instance.of({**live, "metadata": {**live["metadata"], "generation": 3}}))

    def patch(self, body: dict[str, Any]) -> None:
        self.server.must(Asked("PATCH", PATH, {}, body, "application/merge-patch+json", ""))

    def delete(self) -> None:
        self.server.must(Asked("DELETE", PATH, {}, {}, "", ""))

    @property
    def live(self) -> dict[str, Any]:
        stored = self.server.store.get(WIDGET)
        assert stored
        body: dict[str, Any] = stored.body
        return body

    @property
    def ready(self) -> dict[str, Any]:
        found: dict[str, dict[str, Any]] = {each["type"]: each for each in self.live["status"]["conditions"]}
        return found["Ready"]

    @property
    def writes(self) -> list[str]:
        return [asked.path for asked in self.calls if asked.method == "PATCH"]

    # --- the ways of a writer
    def brief_api(self, _target: Target, *, impersonated: bool = False) -> Api:
        self.identities.add(impersonated)
        return self.api

    def discovery(self, _target: Target) -> Discovery:
        return self.found

    def brief_store(self, _target: Target) -> Any:
        cluster = self

        class Store:
            def read(self) -> Any:
                cluster.reads += 1
                return type("Stored", (), {"state": cluster.state})

        return Store()

    def statuses(self, **more: Any) -> InstanceStatuses:
        return InstanceStatuses(self, self.instances.get, lambda: NOW, **more)


def ended(**parts: Any) -> RunEnded:
    return RunEnded(Job(NAME, "tick"), Result(NAME, **{"outcome": Outcome.APPLIED, "recorded": True, "generation": 3, **parts}), 1.0)


def phase(generation: int = 3) -> RunPhase:
    return RunPhase(NAME, "run", COMMIT, "applying", generation=generation)


def heard(cluster: Cluster, *events: Any) -> InstanceStatuses:
    """Let a writer hear events, and wait until it has nothing to do."""
    statuses = cluster.statuses()
    for event in events:
        statuses.hear(event)
    assert statuses.settle(PATIENCE)
    return statuses
