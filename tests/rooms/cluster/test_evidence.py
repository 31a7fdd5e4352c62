"""What is read about a failure, and that nothing goes wrong when it can't be."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from handler.cluster import evidence
from handler.cluster.api import Api
from handler.cluster.evidence import Evidence
from handler.model.names import Identity, Resource
from infra.controlplane.pod_failures import FATE, LOG
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until
from tests.rooms.cluster.faulty_proxy import Wire, refuse

POD = Resource("", "v1", "Pod", "pods", namespaced=True)


@pytest.fixture
def pod(kubectl: Kubectl, namespace: str) -> dict[str, Any]:
    """A pod that restarts for ever, once it has said so."""
    kubectl.run("wait", "serviceaccount", "default", "-n", namespace, "--for=create", f"--timeout={PATIENCE:g}s")  # a controller makes it
    kubectl.run("run", "api", "-n", namespace, "--image=api:1", "--labels=app=api", f"--annotations={FATE}=crash-loop")
    until(lambda: "BackOff" in kubectl.run("get", "events", "-n", namespace))
    found: dict[str, Any] = kubectl("get", "pod", "api", "-n", namespace)
    return found


def test_a_pod_its_warnings_and_its_log_are_read(api: Api, pod: dict[str, Any], namespace: str) -> None:
    reads = Evidence(api)
    found = reads.live(POD, Identity("", "Pod", namespace, "api"))
    assert found
    assert found["metadata"]["uid"] == pod["metadata"]["uid"]
    assert [each["metadata"]["name"] for each in reads.pods(namespace, "app=api")] == ["api"]
    assert reads.pods(namespace, "app=other") == []
    assert [event["reason"] for event in reads.warnings(namespace)] == ["BackOff"]
    assert [each["metadata"]["name"] for each in reads.pods(namespace, "")] == ["api"]
    assert (reads.answered, reads.broken) == (5, False)
    for previous in (False, True):
        assert reads.log(namespace, "api", "api", previous=previous).splitlines() == list(LOG)


def test_a_log_that_is_cut_ends_with_a_whole_line(api: Api, pod: dict[str, Any], namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "LOG_BYTES", len("\n".join(LOG)) - 4)
    assert pod
    assert Evidence(api).log(namespace, "api", "api", previous=False).splitlines() == list(LOG[:-1])


def test_events_are_read_under_the_name_that_may_be_read(kubectl: Kubectl, api: Api, pod: dict[str, Any], namespace: str) -> None:
    rule = {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["list"]}
    metadata = {"name": "newer", "namespace": namespace}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    kubectl.run("create", "serviceaccount", "newer", "-n", namespace)
    kubectl.run("create", "-f", "-", given=json.dumps(role))
    kubectl.run("create", "rolebinding", "newer", "-n", namespace, "--role=newer", f"--serviceaccount={namespace}:newer")
    assert pod

    def permitted() -> Evidence | None:
        found = Evidence(Api(api.connection, impersonate=f"{namespace}/newer"))
        return found if found.warnings(namespace) else None

    reads = until(permitted)  # RBAC is read by its own watches
    assert [(event["reason"], event["note"]) for event in reads.warnings(namespace)] == [
        ("BackOff", "Back-off restarting failed container main")
    ]
    assert reads.pods(namespace, "app=api") == []
    assert reads.log(namespace, "api", "api", previous=False) == ""
    assert not reads.broken, "what is denied isn't there to be read"


def test_a_server_that_fails_takes_little_time_and_leaves_the_failure_as_it_is(
    wire: Wire, through: Callable[..., Api], namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "SECONDS", 0.5)
    wire.tricks = [refuse(503)] * 1000
    reads = Evidence(through())
    for _ in range(50):
        assert reads.live(POD, Identity("", "Pod", namespace, "a")) is None
        assert reads.warnings(namespace) == []
        assert reads.log(namespace, "a", "main", previous=False) == ""
    assert len(wire.seen) < 50, "no read begins once the time is over"
    assert (reads.answered, reads.broken) == (0, True)


def test_reads_of_pods_and_events_are_bounded(api: Api, namespace: str) -> None:
    before, reads = api.requests, Evidence(api)
    for _ in range(100):
        reads.pods(namespace, "app=api")
    assert api.requests - before == 24
