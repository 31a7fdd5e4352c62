"""The writer of instances' statuses against an API server in memory: what it writes and when, one write of an instance at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from handler.app import instance_statuses
from handler.config.settings_digest import settings_digest
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.event import Job
from handler.model.result import Outcome
from handler.model.run_event import HealthChanged, RunPhase
from handler.state.record import Attempt, RecordedInstance, RunStatus
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.patience import PATIENCE
from tests.unit.app.instance_cluster import COMMIT, NAME, NOON, PATH, WIDGET, Cluster, applied, ended, heard, phase

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def conflict(call: Call) -> Reply:
    return 409, {"kind": "Status", "status": "Failure", "reason": "Conflict", "message": "modified", "code": 409}, {}


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
        assert statuses.settle(PATIENCE)
    statuses.look(NAME)
    assert statuses.settle(PATIENCE)
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
    (403, "Forbidden", f'{FORBIDDEN} "default"', "resources: [widgets/status], verbs: [patch]"),
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
        assert statuses.settle(PATIENCE)
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
        assert statuses.settle(PATIENCE)
    assert len(cluster.writes) == 1
    assert "openAPIV3Schema" in caplog.records[0].fields["fix"]  # type: ignore[attr-defined]  # our extra
    assert len(caplog.records) == 1
    statuses.forget(NAME)
    assert not statuses._cut


@pytest.mark.parametrize("status", ["busy", {"conditions": {"Synced": "True"}}])
def test_a_status_of_another_form_is_left_to_whose_it_is(cluster: Cluster, caplog: pytest.LogCaptureFixture, status: object) -> None:
    cluster.live["status"] = status
    with caplog.at_level(logging.WARNING, "anneal.status"):
        heard(cluster, ended(), phase())
    assert not cluster.writes
    assert [record.fields["fix"] for record in caplog.records] == ["write `writeStatus: false` beside mainResource"]  # type: ignore[attr-defined]  # our extra


def test_a_failure_that_no_record_could_take_stands_until_a_record_says_more(cluster: Cluster) -> None:
    cluster.state = None
    failed = ended(outcome=Outcome.FAILED, recorded=False, who="author", message="a.yaml: is wrong")
    statuses = heard(cluster, failed)
    assert cluster.ready["reason"] == "Refused"
    assert "a.yaml: is wrong" in cluster.ready["message"]
    statuses.look(NAME)
    assert statuses.settle(PATIENCE)
    assert cluster.ready["reason"] == "Refused"
    cluster.state = applied()
    statuses.hear(ended())
    assert statuses.settle(PATIENCE)
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
    del cluster.live["status"]
    heard(cluster, ended(generation=9))
    assert cluster.live["status"]["observedGeneration"] == 3, "an object that was made anew hasn't observed those of the older one"


def test_what_a_killed_process_left_is_mended_by_a_look(cluster: Cluster) -> None:
    cluster.state = applied(attempt=Attempt(COMMIT, "r", "s", "t", NOON), status=RunStatus("applying"))
    heard(cluster, phase())
    assert cluster.ready["currentStatus"] == "In Progress"
    cluster.state = applied()
    statuses = cluster.statuses()
    statuses.look(NAME)
    assert statuses.settle(PATIENCE)
    assert cluster.ready["currentStatus"] == "Finished"


def test_a_fault_in_one_write_ends_no_other(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    statuses = cluster.statuses()
    with caplog.at_level(logging.ERROR, "anneal.status"):
        cluster.state = "nonsense"  # type: ignore[assignment]  # what no record is
        statuses.hear(ended())
        assert statuses.settle(PATIENCE)
    assert len(caplog.records) == 1
    cluster.state = applied()
    statuses.hear(ended())
    assert statuses.settle(PATIENCE)
    assert cluster.ready["reason"] == "Applied"


@pytest.fixture
def stopped(cluster: Cluster) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Stops the first write until the second event."""
    reached, go = threading.Event(), threading.Event()

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.method == "PATCH" and not reached.is_set():
            reached.set()
            assert go.wait(PATIENCE)
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
    assert reached.wait(PATIENCE)
    for _ in range(50):
        statuses.hear(phase())
    cluster.state = applied()
    statuses.hear(ended())
    statuses.hear(phase())
    assert not statuses.settle(0.0)
    assert len(cluster.writes) == 1
    go.set()
    assert statuses.settle(PATIENCE)
    assert len(cluster.writes) == 2
    assert cluster.ready["reason"] == "Applied"


def test_progress_waits_for_its_pause_and_an_end_does_not(cluster: Cluster) -> None:
    statuses = cluster.statuses(pause=time.monotonic() + 3600.0)  # a machine that has just started has a small clock
    cluster.state = applied(attempt=Attempt(COMMIT, "r", "s", "t", NOON), status=RunStatus("applying"))
    statuses.hear(phase())
    assert statuses.settle(PATIENCE)
    cluster.state = applied(attempt=Attempt(COMMIT, "r", "s", "t", NOON), status=RunStatus("applying", message="half of it"))
    statuses.hear(phase())
    assert not statuses.settle(0.2)
    assert len(cluster.writes) == 1
    cluster.state = applied()
    statuses.hear(ended())
    assert statuses.settle(PATIENCE)
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
    assert statuses.settle(PATIENCE)
    assert cluster.writes
    assert [len(each) for each in (statuses._due, statuses._busy, statuses._cut, statuses._written)] == [0, 0, 0, 0]
