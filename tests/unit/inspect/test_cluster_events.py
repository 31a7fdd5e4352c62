"""Which events are a target's, and how they are read from either API group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.inspect.cluster_events import SeenEvent, _About, _event
from handler.inspect.inventory_tree import UNTOLD, Inventory, Role, SeenObject
from handler.model.health import Health, Status
from handler.model.names import Identity

WEB = SeenObject(Identity("apps", "Deployment", "shop", "web"), "u1", Health(Status.CURRENT), Role.DECLARED)
POD = SeenObject(Identity("", "Pod", "shop", "web-1"), "u2", Health(Status.CURRENT), Role.OWNED, "u1")
LOST = SeenObject(Identity("", "ConfigMap", "shop", "lost"), "", Health(Status.NOT_FOUND), Role.DECLARED)
APART = SeenObject(Identity("", "ConfigMap", "shop", "apart"), "u4", Health(Status.CURRENT), Role.APART)
INVENTORY = Inventory("shop", "", "", (WEB, POD, LOST, APART))


def about(kind: str, name: str, uid: str = "", version: str = "v1", namespace: str = "shop") -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "namespace": namespace, "name": name, "uid": uid}


@pytest.mark.parametrize(
    ("named", "counts"),
    [
        (about("Deployment", "web", "u1", "apps/v1"), True),
        (about("Deployment", "web", "an earlier life's", "apps/v1"), True),
        (about("Pod", "web-1", "u2"), True),
        (about("Pod", "web-1", "another"), False),
        (about("Pod", "web-1"), False),
        (about("Deployment", "web", "x", "example.com/v1"), False),
        (about("Deployment", "web", "x", "apps/v1", "other"), False),
        (about("ConfigMap", "lost"), True),
        (about("ConfigMap", "apart", "u4"), False),
        (None, False),
        ("nonsense", False),
    ],
)
@pytest.mark.parametrize("key", ["involvedObject", "regarding"])
def test_an_event_is_the_targets_by_uid_or_by_what_is_declared(named: Any, counts: bool, key: str) -> None:
    assert _About.of(INVENTORY.objects).has({key: named}) is counts


def test_an_event_of_the_core_group() -> None:
    event = {
        "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
        "involvedObject": about("Pod", "web-1", "u2"),
        "type": "Warning",
        "reason": "BackOff",
        "message": "Back-off\nwith http://ann:hunter2@db",
        "count": 5,
        "firstTimestamp": "2026-01-01T00:00:01Z",
        "lastTimestamp": "2026-01-01T00:09:00Z",
        "source": {"component": "kubelet"},
    }
    times = "2026-01-01T00:00:01Z", "2026-01-01T00:09:00Z"
    assert _event(event, INVENTORY) == SeenEvent(
        "Pod/shop/web-1", "", "u2", "Warning", "BackOff", "Back-off with http://ann:***@db", 5, *times, "kubelet"
    )


def test_an_event_of_the_newer_group_without_what_a_program_wrote() -> None:
    event = {
        "metadata": {},
        "regarding": about("Pod", "web-1", "u2"),
        "type": "Warning",
        "reason": "Unhealthy",
        "note": "Readiness probe failed: password is swordfish",
        "series": {"count": 3, "lastObservedTime": "2026-01-01T00:09:00.5Z"},
        "eventTime": "2026-01-01T00:00:01.5Z",
        "reportingController": "kubelet",
    }
    times = "2026-01-01T00:00:01.5Z", "2026-01-01T00:09:00.5Z"
    assert _event(event, INVENTORY) == SeenEvent(
        "Pod/shop/web-1", "", "u2", "Warning", "Unhealthy", "Readiness probe failed", 3, *times, "kubelet"
    )


def test_an_event_of_any_shape_is_no_error() -> None:
    found = _event({"metadata": {}, "involvedObject": 3, "message": ["x"], "count": "many", "type": {}}, INVENTORY)
    assert (found.object, found.message, found.times) == ("", "", 1)


@pytest.mark.parametrize("named", [about("Pod", "web-1", "u2"), about("Deployment", "web", "an earlier life's", "apps/v1")])
def test_of_an_object_that_holds_a_secret_an_event_tells_its_reason_alone(named: dict[str, Any]) -> None:
    closed = replace(INVENTORY, objects=tuple(replace(each, closed=True) for each in INVENTORY.objects))
    event = {"metadata": {}, "regarding": named, "type": "Warning", "reason": "Refused", "note": "refused swordfish"}
    found = _event(event, closed)
    assert (found.message, found.reason) == (UNTOLD, "Refused")
    assert _event(event, INVENTORY).message == "refused swordfish"
