"""The end of a log is shown only without what its pod can read of Secrets."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from handler.cluster.evidence import Evidence
from handler.engine.waits.log_tail import LoggedContainer, LogTail, logged_containers, read_container, read_tail
from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable

FAILED = [{"name": "main", "state": {"terminated": {"exitCode": 1}}}]


class Reads(Evidence):
    """A log, and Secrets that can be read or not."""

    def __init__(self, log: str, secrets: dict[str, Any]) -> None:
        self.said, self.secrets, self.asked = log, secrets, list[str]()

    def secret(self, namespace: str, name: str) -> dict[str, Any] | None:
        self.asked.append(f"{namespace}/{name}")
        found = self.secrets.get(name)
        if isinstance(found, AnnealError):
            raise found
        return found and {"data": {"value": base64.b64encode(found.encode()).decode()}}

    def log(self, namespace: str, pod: str, container: str, *, previous: bool) -> str:
        self.asked.append(f"log of {namespace}/{pod}/{container}")
        assert not previous
        return self.said


def pod(spec: dict[str, Any], statuses: list[dict[str, Any]] = FAILED) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": "api-x"}, "spec": spec, "status": {"containerStatuses": statuses}}


SIDECAR = {"containers": [{"name": "main"}, {"name": "side", "env": [{"valueFrom": {"secretKeyRef": {"name": "db", "key": "value"}}}]}]}


def test_a_log_loses_what_any_container_of_the_pod_can_read_and_nothing_else() -> None:
    log = '\x1b[31mat a=hunter2\\"hunter2\x1b[0m\n\n  own-value eyJhbGciOi.eyJzdWIiOi.c2ln \x07 PEM-LINE other'
    reads = Reads(log, {"db": 'hunter2"hunter2', "key": "a\nPEM-LINE\n", "theirs": "other"})
    first = {"env": [{"name": "API_KEY", "value": "own-value"}], "envFrom": [{"secretRef": {"name": "key"}}]}
    found = read_tail(reads, pod({**SIDECAR, "initContainers": [first]}), "shop")
    assert found == LogTail("api-x", "main", lines=("at a=***", "*** *** \\x07 *** other"))
    assert reads.asked == ["shop/db", "shop/key", "log of shop/api-x/main"]


def test_a_termination_message_is_masked_as_a_log() -> None:
    ended = [{"name": "main", "state": {"terminated": {"exitCode": 1, "message": "last: hunter2hunter2\n"}}}]
    secrets = {"db": "hunter2hunter2"}
    for log, lines in (("one\n", ("one", "last: ***")), ("one\nlast: hunter2hunter2\n", ("one", "last: ***")), ("", ("last: ***",))):
        found = read_tail(Reads(log, secrets), pod(SIDECAR, ended), "shop")
        assert found
        assert found.lines == lines


def test_a_secret_that_does_not_exist_has_nothing_to_hide() -> None:
    found = read_tail(Reads("as it is", {}), pod(SIDECAR), "shop")
    assert found
    assert found.lines == ("as it is",)


@pytest.mark.parametrize(
    ("error", "why", "fix"),
    [
        (AccessDenied.of("Secret/shop/db", "403: no"), "which can't be read to mask it: 403", "resourceNames: [db], verbs: [get]"),
        (ClusterUnavailable.of("evidence", "no time is left"), "to mask it: no time is left", "try again: kubectl get secret/db -n shop"),
    ],
)
def test_a_log_is_not_even_read_while_a_secret_cant_be(error: AnnealError, why: str, fix: str) -> None:
    reads = Reads("hunter2", {"db": error})
    found = read_tail(reads, pod(SIDECAR), "shop")
    assert found
    assert found.withheld == f"the pod may print Secret/shop/db, {why}" if "403" in why else why in found.withheld
    assert fix in found.fix
    assert (found.lines, reads.asked) == ((), ["shop/db"])


def test_a_container_that_never_ran_has_no_log() -> None:
    reads = Reads("x", {})
    assert read_tail(reads, pod(SIDECAR, [{"name": "main", "state": {"waiting": {}}}]), "shop") is None
    assert reads.asked == []


@pytest.mark.parametrize("state", [{"running": {"startedAt": "now"}}, {"terminated": {"exitCode": 0}}])
def test_a_healthy_pods_log_is_read_where_that_is_asked_for(state: dict[str, Any]) -> None:
    well = pod(SIDECAR, [{"name": "main", "ready": True, "state": state}])
    reads = Reads("has hunter2hunter2", {"db": "hunter2hunter2"})
    assert read_tail(reads, well, "shop") is None
    assert read_tail(reads, well, "shop", healthy=True) == LogTail("api-x", "main", lines=("has ***",))
    waiting = pod(SIDECAR, [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}])
    assert read_tail(reads, waiting, "shop", healthy=True) is None


RESTARTED: dict[str, Any] = {"name": "side", "ready": True, "restartCount": 2, "state": {"running": {"startedAt": "now"}}}


def test_the_containers_of_a_pod_that_have_a_log_are_known() -> None:
    statuses = [{"name": "main", "state": {"waiting": {}}}, RESTARTED, {"name": "once", "state": {"terminated": {"exitCode": 0}}}]
    assert logged_containers(pod(SIDECAR, statuses)) == (LoggedContainer("side", previous=True), LoggedContainer("once", previous=False))
    first = {"initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": 0}}}], "containerStatuses": [RESTARTED]}
    assert [each.name for each in logged_containers({"status": first})] == ["init", "side"]


def test_any_container_of_a_pod_is_read_masked_by_what_all_of_them_can_read() -> None:
    reads = Reads("has hunter2hunter2", {"db": "hunter2hunter2"})
    found = read_container(reads, pod(SIDECAR, [RESTARTED]), "shop", "side", previous=False)
    assert found == LogTail("api-x", "side", lines=("has ***",))
    refused = Reads("hunter2", {"db": AccessDenied.of("Secret/shop/db", "403: no")})
    assert read_container(refused, pod(SIDECAR), "shop", "side", previous=False).lines == ()
