"""The writer of instances' statuses against an API server in memory: what it writes, when, and what it leaves when it is refused."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from handler.app import instance_statuses
from handler.app.instance_statuses import InstanceStatuses
from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.config.git_settings import Repository
from handler.config.instance_target import InstanceTarget, instance_target
from handler.config.settings import Target
from handler.config.settings_digest import settings_digest
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.event import Job
from handler.model.instance import Instance
from handler.model.names import Identity, Resource
from handler.model.result import Outcome, Result
from handler.model.run_event import HealthChanged, RunEnded, RunPhase
from handler.state.record import Attempt, RecordedInstance, RunStatus, State
from tests.fakes.apiserver import ApiServer, Call, FakeConnection
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.kinds import SERVED, VERBS, Served
from tests.fakes.apiserver.server import Asked

NOW, NOON = 1_772_366_400.0, "2026-03-01T12:00:00Z"
SOON = 60.0
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


def conflict(call: Call) -> Reply:
    return 409, {"kind": "Status", "status": "Failure", "reason": "Conflict", "message": "modified", "code": 409}, {}


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
        return stored.body

    @property
    def ready(self) -> dict[str, Any]:
        return {each["type"]: each for each in self.live["status"]["conditions"]}["Ready"]

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
        return InstanceStatuses(self, self.instances.get, lambda text: text.replace("hunter2", "***"), lambda: NOW, **more)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def ended(**parts: Any) -> RunEnded:
    return RunEnded(Job(NAME, "tick"), Result(NAME, **{"outcome": Outcome.APPLIED, "recorded": True, "generation": 3, **parts}), 1.0)


def phase(generation: int = 3) -> RunPhase:
    return RunPhase(NAME, "run", COMMIT, "applying", generation=generation)


def heard(cluster: Cluster, *events: Any) -> InstanceStatuses:
    """Let a writer hear events, and wait until it has nothing to do."""
    statuses = cluster.statuses()
    for event in events:
        statuses.hear(event)
    assert statuses.settle(SOON)
    return statuses


def test_the_end_of_a_run_is_written_by_the_subresource_with_uid_and_version(cluster: Cluster) -> None:
    before = cluster.live["metadata"]
    heard(cluster, ended())
    assert cluster.writes == [f"{PATH}/status"]
    sent = cluster.calls[-1].body
    assert sent["metadata"] == {"uid": before["uid"], "resourceVersion": before["resourceVersion"]}
    assert (cluster.ready["status"], cluster.ready["reason"], cluster.ready["name"]) == ("True", "Applied", NAME)
    assert cluster.live["status"]["observedGeneration"] == 3
    assert cluster.identities == {True}


def test_nothing_is_written_where_nothing_changes(cluster: Cluster) -> None:
    statuses = heard(cluster, ended())
    for event in (ended(), phase(), HealthChanged(NAME, "", "healthy")):
        statuses.hear(event)
        assert statuses.settle(SOON)
    statuses.look(NAME)
    assert statuses.settle(SOON)
    assert len(cluster.writes) == 1
    assert cluster.reads >= 4


def test_without_a_subresource_the_object_itself_is_written_and_no_generation() -> None:
    cluster = Cluster(has_status=False)
    heard(cluster, ended())
    assert cluster.writes == [PATH]
    assert "observedGeneration" not in cluster.live["status"]
    assert "observedGeneration" not in cluster.ready


def test_targets_of_the_configuration_and_looks_cost_nothing(cluster: Cluster) -> None:
    heard(cluster, RunPhase("shop", "run", COMMIT, "applying"), replace(ended(), job=Job(NAME, "tick", dry_run=True)))
    assert not cluster.calls


def test_an_instance_that_is_gone_or_not_to_be_written_is_left(cluster: Cluster) -> None:
    trigger = ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),), write_status=False)
    cluster.instances[NAME] = replace(cluster.instances[NAME], trigger=TriggerSettings(trigger))
    heard(cluster, ended())
    cluster.instances.clear()
    heard(cluster, ended())
    assert not cluster.calls


@pytest.mark.parametrize("again", [False, True])
def test_an_object_that_is_gone_or_made_anew_is_not_written(cluster: Cluster, *, again: bool) -> None:
    known = cluster.instances[NAME]
    cluster.delete()
    if again:
        cluster.create()
    cluster.instances[NAME] = known
    heard(cluster, ended())
    assert not cluster.writes


def test_a_change_between_read_and_write_is_decided_again(cluster: Cluster) -> None:
    met: list[Call] = []

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.method == "PATCH" and not met:
            met.append(call)
            cluster.state = applied(attempt=Attempt("b" * 40, "r", "s", "t", NOON), status=RunStatus("applying"))
            cluster.patch({"metadata": {"labels": {"by": "other"}}})
        return do()

    cluster.way = way
    heard(cluster, ended())
    assert len(cluster.writes) == 2
    assert cluster.ready["reason"] == "InProgress"
    assert cluster.live["metadata"]["labels"] == {"by": "other"}


def test_tries_are_bounded_where_others_always_change_it(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    cluster.way = lambda call, do: conflict(call) if call.asked.method == "PATCH" else do()
    with caplog.at_level(logging.WARNING, "anneal.status"):
        heard(cluster, ended())
    assert len(cluster.writes) == 5
    assert len(caplog.records) == 1


def refusing(code: int, reason: str, message: str) -> Callable[[Call, Callable[[], Reply]], Reply]:
    body = {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}
    return lambda call, do: (code, body, {}) if call.asked.method == "PATCH" else do()


FORBIDDEN = (
    'widgets.example.com "a" is forbidden: User "x" cannot patch resource "widgets/status" in API group "example.com" in the namespace'
)
REFUSALS = [
    (403, "Forbidden", f'{FORBIDDEN} "default"', 'resources: ["widgets/status"], verbs: ["patch"]'),
    (422, "Invalid", "Widget is invalid: status.conditions: Invalid value", "x-kubernetes-preserve-unknown-fields"),
]


@pytest.mark.parametrize(("code", "reason", "message", "fix"), REFUSALS)
def test_a_refusal_is_logged_once_for_a_template_with_the_way_out(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, code: int, reason: str, message: str, fix: str
) -> None:
    cluster.way = refusing(code, reason, message)
    with caplog.at_level(logging.WARNING, "anneal.status"):
        statuses = heard(cluster, ended())
        statuses.look(NAME)
        assert statuses.settle(SOON)
    assert len(cluster.writes) == 2
    assert [fix in record.fields["fix"] for record in caplog.records] == [True]  # type: ignore[attr-defined]  # our extra


def test_a_kind_that_lost_its_subresource_is_written_itself(cluster: Cluster) -> None:
    lost = Cluster(has_status=False)
    missing = {"kind": "Status", "status": "Failure", "reason": "NotFound", "message": "not found", "code": 404}
    lost.way = lambda call, do: (404, missing, {}) if call.asked.path.endswith("/status") else do()
    lost.found.index()
    known = cluster.found.index()
    lost.found._index = known  # as it was discovered before
    heard(lost, ended())
    assert lost.writes == [f"{PATH}/status", PATH]
    assert lost.ready["reason"] == "Applied"


def test_what_a_schema_cuts_is_logged_and_not_written_again(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    def cutting(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.method == "PATCH":
            call.asked.body.pop("status")
        return do()

    cluster.way = cutting
    with caplog.at_level(logging.WARNING, "anneal.status"):
        statuses = heard(cluster, ended())
        statuses.hear(ended())
        assert statuses.settle(SOON)
    assert len(cluster.writes) == 1
    assert "openAPIV3Schema" in caplog.records[0].fields["fix"]  # type: ignore[attr-defined]  # our extra
    assert len(caplog.records) == 1
    statuses.forget(NAME)
    assert not statuses._cut


def test_a_failure_that_no_record_could_take_stands_until_a_record_says_more(cluster: Cluster) -> None:
    cluster.state = None
    failed = ended(outcome=Outcome.FAILED, recorded=False, who="author", message="a.yaml: password hunter2")
    statuses = heard(cluster, failed)
    assert cluster.ready["reason"] == "Refused"
    assert "***" in cluster.ready["message"]
    assert "hunter2" not in cluster.ready["message"]
    statuses.look(NAME)
    assert statuses.settle(SOON)
    assert cluster.ready["reason"] == "Refused"
    cluster.state = applied()
    statuses.hear(ended())
    assert statuses.settle(SOON)
    assert cluster.ready["reason"] == "Applied"


def test_a_record_of_an_older_object_says_nothing_of_a_new_one(cluster: Cluster) -> None:
    cluster.state = applied(instance=RecordedInstance(WIDGET, "an-older-one"))
    heard(cluster, phase(0))
    assert cluster.ready["reason"] == "NotStarted"


def test_only_a_recorded_end_says_which_generation_was_observed(cluster: Cluster) -> None:
    heard(cluster, ended(outcome=Outcome.BUSY, recorded=False))
    assert "observedGeneration" not in cluster.live["status"]
    cluster.state = applied(settings=settings_digest(cluster.instances[NAME]))
    heard(cluster, HealthChanged(NAME, "", "healthy"))
    assert cluster.live["status"]["observedGeneration"] == 3


def test_what_a_killed_process_left_is_mended_by_a_look(cluster: Cluster) -> None:
    cluster.state = applied(attempt=Attempt(COMMIT, "r", "s", "t", NOON), status=RunStatus("applying"))
    heard(cluster, phase())
    assert cluster.ready["currentStatus"] == "In Progress"
    cluster.state = applied()
    statuses = cluster.statuses()
    statuses.look(NAME)
    assert statuses.settle(SOON)
    assert cluster.ready["currentStatus"] == "Finished"


@pytest.fixture
def stopped(cluster: Cluster) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Stops the first write until the second event."""
    reached, go = threading.Event(), threading.Event()

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.method == "PATCH" and not reached.is_set():
            reached.set()
            assert go.wait(SOON)
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
    assert reached.wait(SOON)
    for _ in range(50):
        statuses.hear(phase())
    cluster.state = applied()
    statuses.hear(ended())
    statuses.hear(phase())
    assert not statuses.settle(0.0)
    assert len(cluster.writes) == 1
    go.set()
    assert statuses.settle(SOON)
    assert len(cluster.writes) == 2
    assert cluster.ready["reason"] == "Applied"


def test_progress_waits_for_its_pause_and_an_end_does_not(cluster: Cluster) -> None:
    statuses = cluster.statuses(pause=3600.0)
    cluster.state = applied(attempt=Attempt(COMMIT, "r", "s", "t", NOON), status=RunStatus("applying"))
    statuses.hear(phase())
    assert statuses.settle(SOON)
    cluster.state = applied(attempt=Attempt(COMMIT, "r", "s", "t", NOON), status=RunStatus("applying", message="half of it"))
    statuses.hear(phase())
    assert not statuses.settle(0.2)
    assert len(cluster.writes) == 1
    cluster.state = applied()
    statuses.hear(ended())
    assert statuses.settle(SOON)
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
    assert statuses.settle(SOON)
    assert cluster.writes
    assert [len(each) for each in (statuses._due, statuses._busy, statuses._cut, statuses._written)] == [0, 0, 0, 0]


def test_a_fault_in_one_write_ends_no_other(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    statuses = cluster.statuses()
    with caplog.at_level(logging.ERROR, "anneal.status"):
        cluster.state = "nonsense"  # type: ignore[assignment]  # what no record is
        statuses.hear(ended())
        assert statuses.settle(SOON)
    assert len(caplog.records) == 1
    cluster.state = applied()
    statuses.hear(ended())
    assert statuses.settle(SOON)
    assert cluster.ready["reason"] == "Applied"
