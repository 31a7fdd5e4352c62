"""Whose logs may be asked for by name, and how logs are printed."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest

from handler.engine.run.errors import RequestRefused
from handler.engine.waits.log_tail import LoggedContainer, LogTail
from handler.inspect.inventory_tree import Inventory, PodFacts, Role, SeenObject
from handler.inspect.pod_logs import LoggedPod, PodLog, _workload, asked, read_named
from handler.model.health import Health, Status
from handler.model.names import Identity

WEB = Identity("apps", "Deployment", "shop", "web")
POD = Identity("", "Pod", "shop", "web-1")
OURS = SeenObject(WEB, "u1", Health(Status.CURRENT), Role.DECLARED)


@pytest.mark.parametrize(
    ("subject", "found"),
    [
        ("Deployment/shop/api", Identity("apps", "Deployment", "shop", "api")),
        ("Job/shop/migrate", Identity("batch", "Job", "shop", "migrate")),
        ("Pod/shop/api", Identity("", "Pod", "shop", "api")),
        ("Service/shop/api", None),
        ("Namespace/shop", None),
        ("Deployment/api", None),
        ("Deployment//api", None),
        ("target shop", None),
        ("", None),
    ],
)
def test_workloads_have_logs(subject: str, found: Identity | None) -> None:
    assert _workload(subject) == found


@pytest.mark.parametrize(
    ("tail", "lines"),
    [
        (None, ["Pod/shop/c: none of its containers that have run does badly now"]),
        (LogTail("c", "main", lines=("one", "two")), ["Pod/shop/c, pod c, container main:", "| one", "| two"]),
        (
            LogTail("c", "main", previous=True),
            [
                "Pod/shop/c, pod c, container main, before its last restart:",
                "| nothing; or it can't be read: kubectl auth can-i get pods --subresource=log -n shop",
            ],
        ),
        (LogTail("c", "main", withheld="why", fix="way out"), ["Pod/shop/c, pod c, container main:", "| withheld: why", "| way out"]),
    ],
)
def test_a_log_is_printed_below_its_object(tail: LogTail | None, lines: list[str]) -> None:
    assert list(LoggedPod("Pod/shop/c", tail).lines()) == lines


@pytest.mark.parametrize(
    "seen",
    [
        OURS,
        SeenObject(Identity("batch", "CronJob", "shop", "web"), "u1", Health(Status.CURRENT), Role.DECLARED),
        SeenObject(POD, "u1", Health(Status.FAILED), Role.OWNED, "u2"),
        SeenObject(WEB, "u1", Health(Status.CURRENT), Role.ORPHAN),
    ],
)
def test_workloads_of_the_inventory_have_logs_by_name(seen: SeenObject) -> None:
    assert asked(Inventory("shop", "", "", (seen,)), str(seen.identity)) == seen


@pytest.mark.parametrize(
    ("seen", "subject"),
    [
        (OURS, "Deployment/shop/other"),
        (OURS, "Pod/shop/web"),
        (OURS, "Deployment/other/web"),
        (SeenObject(WEB, "u1", Health(Status.CURRENT), Role.APART), str(WEB)),
        (SeenObject(WEB, "", Health(Status.NOT_FOUND), Role.DECLARED), str(WEB)),
        (SeenObject(Identity("example.com", "Deployment", "shop", "web"), "u1", Health(Status.CURRENT), Role.DECLARED), str(WEB)),
        (SeenObject(Identity("", "ConfigMap", "shop", "web"), "u1", Health(Status.CURRENT), Role.DECLARED), "ConfigMap/shop/web"),
    ],
)
def test_anything_else_is_refused(seen: SeenObject, subject: str) -> None:
    with pytest.raises(RequestRefused, match="is no pod of this target"):
        asked(Inventory("shop", "", "", (seen,)), subject)


class Server:
    """An API server that has one pod, or none."""

    impersonate = "shop/deployer"

    def __init__(self, pod: dict[str, Any] | None) -> None:
        self.pod, self.asked = pod, list[str]()

    def get(self, path: str, *_: object, **__: object) -> dict[str, Any] | None:
        self.asked.append(path)
        return self.pod


def test_another_pod_of_that_name_is_not_read() -> None:
    facts = PodFacts("Running", "", 1, 1, 0, "n")
    pod = SeenObject(POD, "u3", Health(Status.CURRENT), Role.OWNED, "u1", pod=facts)
    server: Any = Server({"metadata": {"name": "web-1", "namespace": "shop", "uid": "another"}})
    found = read_named(server, Inventory("shop", "", "", (OURS, pod)), OURS)
    assert found == PodLog("shop", str(WEB), "web-1", notes=("Pod/shop/web-1 is gone; another may have come",))
    assert server.asked == ["/api/v1/namespaces/shop/pods/web-1"]


def test_what_has_no_pods_has_no_log() -> None:
    server: Any = Server(None)
    assert read_named(server, Inventory("shop", "", "", (OURS,)), OURS).notes == ("it has no pods, or they can't be listed",)
    assert server.asked == []


class Container(Server):
    """An API server with one pod, whose log it gives."""

    def stream(self, request: Any) -> io.BytesIO:
        self.asked.append(f"{request.query['container']} {request.query.get('previous', '')}".strip())
        return io.BytesIO(b"one\ntwo\n")


PROXY = {"name": "proxy", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": "now"}}}
APP = {"name": "app", "ready": True, "restartCount": 1, "state": {"running": {"startedAt": "now"}}}
TWO = {"metadata": {"name": "web-1", "namespace": "shop", "uid": "u3"}, "spec": {}, "status": {"containerStatuses": [PROXY, APP]}}
KNOWN = (LoggedContainer("proxy", previous=False), LoggedContainer("app", previous=True))


def seen_pod(name: str, uid: str) -> SeenObject:
    facts = PodFacts("Running", "", 1, 1, 0, "n")
    return SeenObject(replace(POD, name=name), uid, Health(Status.CURRENT), Role.OWNED, "u1", created=uid, pod=facts)


def test_each_container_and_pod_is_reached_and_by_itself_the_first() -> None:
    inventory = Inventory("shop", "", "", (OURS, seen_pod("web-1", "u3"), seen_pod("web-0", "u2")))
    server: Any = Container(TWO)
    found = read_named(server, inventory, OURS)
    assert (found.container, found.previous, found.lines, found.containers) == ("proxy", False, ("one", "two"), KNOWN)
    assert found.pods == ("Pod/shop/web-1", "Pod/shop/web-0")
    for previous in (False, True):
        found = read_named(server, inventory, OURS, "app", previous=previous)
        assert (found.container, found.previous) == ("app", previous)
    assert [each for each in server.asked if not each.startswith("/")] == ["proxy", "app", "app true"]


@pytest.mark.parametrize(("container", "previous"), [("proxy", True), ("other", False), ("../app", False)])
def test_a_container_without_such_a_log_is_refused_and_not_read(container: str, *, previous: bool) -> None:
    server: Any = Container(TWO)
    with pytest.raises(RequestRefused, match="has no container of that name with such a log"):
        read_named(server, Inventory("shop", "", "", (OURS, seen_pod("web-1", "u3"))), OURS, container, previous=previous)
    assert server.asked == ["/api/v1/namespaces/shop/pods/web-1"]
