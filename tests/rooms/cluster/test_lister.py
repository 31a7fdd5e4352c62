"""The shared lister against a real API server: cuts, expiry, new credentials, a kind that goes and comes back, rights that come later."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handler.cluster import lister as listing
from handler.cluster import watch
from handler.cluster.api import Api
from handler.cluster.connect import ClusterConnection
from handler.cluster.discovery import Discovery
from handler.cluster.lister import Followed, Lister, LiveChange
from handler.cluster.write import Writer
from handler.model.backoff import Backoff
from handler.model.errors import AccessDenied, ApiRefused
from handler.model.names import Resource, identity_of
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until
from tests.rooms.cluster.conftest import Apply, Kind, config_map
from tests.rooms.cluster.faulty_proxy import Handler, Trick, Wire, refuse

Through = Callable[..., Api]
Made = Callable[[Api], Lister]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scope that fails is tried again soon."""
    monkeypatch.setattr(listing, "_AGAIN", Backoff(0.1, 0.5))


@pytest.fixture
def lister() -> Iterator[Made]:
    made: list[Lister] = []

    def make(api: Api) -> Lister:
        made.append(Lister(api))
        return made[-1]

    yield make
    for each in made:
        each.close()


def data_of(followed: Followed, namespace: str, name: str = "a") -> str:
    item = followed.get(namespace, name)
    return str(item["data"]["a"]) if item else ""


def requests(wire: Wire) -> list[str]:
    """Return LIST or WATCH, in order."""
    return ["watch" if "watch=true" in path else "list" for _, path in wire.seen]


def test_a_watch_that_is_cut_is_resumed_without_another_list(
    wire: Wire, through: Through, lister: Made, apply: Apply, kind: Kind, namespace: str
) -> None:
    apply(config_map(namespace, "a", {"a": "1"}))
    heard = list[LiveChange]()
    followed = lister(through()).follow(kind("v1", "ConfigMap"), namespace, hear=heard.append)
    assert followed.wait(PATIENCE)
    until(wire.cut)
    apply(config_map(namespace, "a", {"a": "2"}))
    until(lambda: data_of(followed, namespace) == "2")
    assert requests(wire)[0] == "list"
    assert set(requests(wire)[1:]) == {"watch"}
    assert followed.complete
    assert all("managedFields" not in item["metadata"] for item in followed.items())
    until(lambda: [change.observed for change in heard if change.identity.name == "a"] == [False, True])


def test_after_410_the_list_shows_what_was_deleted_meanwhile(
    wire: Wire, through: Through, lister: Made, apply: Apply, writer: Writer, kind: Kind, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LIMIT", 2)
    maps = kind("v1", "ConfigMap")
    made = [apply(config_map(namespace, f"c{number}", {"a": "1"}, labels={"l": namespace})) for number in range(5)]

    def expire(_: Handler) -> bool:
        writer.delete(maps, identity_of(made[3]), made[3]["metadata"]["uid"])
        return refuse(410)(_)

    wire.only, wire.tricks = lambda method, path: "watch=true" in path, [expire]
    heard = list[LiveChange]()
    followed = lister(through()).follow(maps, namespace, f"l={namespace}", heard.append)
    until(lambda: len(heard) == 6)
    assert (heard[-1].identity.name, heard[-1].after, heard[-1].observed) == ("c3", None, False)
    assert requests(wire)[:6] == [*["list"] * 3, "watch", *["list"] * 2]
    assert len(followed.items()) == 4


def test_a_token_that_ends_is_read_anew_from_its_file(
    wire: Wire, through: Through, lister: Made, apply: Apply, kind: Kind, namespace: str, tmp_path: Path
) -> None:
    sent = list[str]()

    def end(handler: Handler) -> bool:
        path = tmp_path / "proxied"
        path.write_text(path.read_text().replace("unused-by-the-proxy", "a-new-one"))
        return refuse(401)(handler)

    def note(handler: Handler) -> bool:
        sent.append(handler.headers["Authorization"])
        return True

    wire.only = lambda method, path: "watch=true" in path
    tricks: list[Trick] = [end, note]
    wire.tricks = tricks
    followed = lister(through()).follow(kind("v1", "ConfigMap"), namespace)
    until(lambda: sent)
    apply(config_map(namespace, "a", {"a": "1"}))
    until(lambda: data_of(followed, namespace) == "1")
    assert sent == ["Bearer a-new-one"]
    assert followed.error is None


def widgets(group: str) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True}
    version |= {"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    names = {"plural": "widgets", "kind": "Widget"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def test_a_kind_that_is_deleted_is_missed_and_followed_again_once_it_is_back(
    api: Api, lister: Made, writer: Writer, kubectl: Kubectl, namespace: str
) -> None:
    group = f"{namespace}.example.com"
    resource = Resource(group, "v1", "Widget", "widgets", namespaced=True)
    followed = lister(api).follow(resource, namespace)
    until(lambda: followed.error)
    assert isinstance(followed.error, ApiRefused)
    assert not followed.wait(0)
    crd, widget = widgets(group), {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": namespace}}
    kubectl.apply(crd)
    until(lambda: followed.complete)
    until(lambda: Discovery(api).find(f"{group}/v1", "Widget"))
    writer.apply(resource, widget, "", "")
    until(followed.items)
    kubectl.run("delete", "crd", f"widgets.{group}", "--wait=true")
    until(lambda: followed.error)
    assert "isn't served" in str(followed.error)
    until(lambda: kubectl.tried("create", "-f", "-", given=json.dumps(crd)).returncode == 0)
    try:
        until(lambda: followed.complete)
        assert followed.items() == []
    finally:
        kubectl.run("delete", "crd", f"widgets.{group}", "--wait=false")


def test_a_forbidden_kind_says_what_is_missing_and_is_followed_once_granted(
    connection: ClusterConnection, lister: Made, kubectl: Kubectl, kind: Kind, namespace: str
) -> None:
    kubectl.run("create", "serviceaccount", "reader", "-n", namespace)
    followed = lister(Api(connection, impersonate=f"{namespace}/reader")).follow(kind("v1", "ConfigMap"), namespace)
    until(lambda: followed.error)
    assert isinstance(followed.error, AccessDenied)
    assert "configmaps" in str(followed.error)
    assert not followed.complete
    kubectl.run("create", "rolebinding", "reader", "-n", namespace, "--clusterrole=view", f"--serviceaccount={namespace}:reader")
    until(lambda: followed.complete)
