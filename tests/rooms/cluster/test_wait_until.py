"""Waiting: one LIST and one WATCH, through cut connections and finalizers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.cluster.wait_until import until, until_gone
from handler.cluster.write import Writer
from handler.model.errors import AccessDenied, LeaseLost
from handler.model.names import Identity, Resource, identity_of
from tests.patience import PATIENCE
from tests.rooms.cluster.conftest import Apply, Kind, config_map
from tests.rooms.cluster.faulty_proxy import Handler, Wire, refuse
from tests.rooms.cluster.finalizers import drop_finalizers, once


def done(item: dict[str, Any]) -> bool:
    return bool(item["data"]["a"] == "done")


def test_waiting_for_what_holds_already_is_one_list(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
    apply(config_map(namespace, "a", {"a": "done"}))
    before = api.requests
    assert until(api, [(kind("v1", "ConfigMap"), Identity("", "ConfigMap", namespace, "a"))], done, PATIENCE) == []
    assert api.requests - before <= 2


def test_a_change_is_seen_by_one_list_and_one_watch_for_many(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
    resource = kind("v1", "ConfigMap")
    wanted = [(resource, identity_of(apply(config_map(namespace, f"c{i}")))) for i in range(5)]
    watcher = Api(api.connection)

    def change() -> None:
        for _, identity in wanted:
            apply(config_map(namespace, identity.name, {"a": "done"}))

    assert until(watcher, wanted, done, PATIENCE, once(change, lambda: watcher.requests == 2)) == []
    assert watcher.requests == 2


def test_objects_not_ready_at_the_timeout_are_returned_as_last_seen(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
    resource = kind("v1", "ConfigMap")
    live = apply(config_map(namespace, "a"))
    absent = Identity("", "ConfigMap", namespace, "absent")
    left = dict(until(api, [(resource, identity_of(live)), (resource, absent)], done, 0.5))
    assert left[absent] is None
    seen = left[identity_of(live)]
    assert seen
    assert seen["data"] == {"a": "1"}


def test_a_namespace_becomes_active(api: Api, kind: Kind, namespace: str) -> None:
    wanted = [(kind("v1", "Namespace"), Identity("", "Namespace", "", namespace))]
    assert until(api, wanted, lambda item: bool(item["status"]["phase"] == "Active"), PATIENCE) == []


def test_a_deletion_that_a_finalizer_holds_is_returned_with_it(api: Api, apply: Apply, writer: Writer, kind: Kind, namespace: str) -> None:
    resource = kind("v1", "ConfigMap")
    held = apply(config_map(namespace, "held", finalizers=["anneal.dev/test"]))
    free = apply(config_map(namespace, "free"))
    wanted = [(resource, identity_of(item), item["metadata"]["uid"]) for item in (held, free)]
    for _, identity, uid in wanted:
        writer.delete(resource, identity, uid)
    survivors = until_gone(api, wanted, 0.5)
    assert [(item["metadata"]["name"], item["metadata"]["finalizers"], item["kind"]) for item in survivors] == [
        ("held", ["anneal.dev/test"], "ConfigMap")
    ]
    waiting = Api(api.connection)
    release = once(lambda: drop_finalizers(api, resource, namespace, "held"), lambda: waiting.requests == 2)
    assert until_gone(waiting, wanted, PATIENCE, release) == []


def test_an_object_created_anew_counts_as_gone(api: Api, apply: Apply, writer: Writer, kind: Kind, namespace: str) -> None:
    resource = kind("v1", "ConfigMap")
    old = apply(config_map(namespace, "a"))
    writer.delete(resource, identity_of(old), old["metadata"]["uid"])
    apply(config_map(namespace, "a"))
    assert until_gone(api, [(resource, identity_of(old), old["metadata"]["uid"])], PATIENCE) == []


def test_a_deleted_namespace_goes(api: Api, writer: Writer, apply: Apply, kind: Kind, namespace: str) -> None:
    live = apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{namespace}-b"}})
    resource = kind("v1", "Namespace")
    writer.delete(resource, identity_of(live), live["metadata"]["uid"])
    assert until_gone(api, [(resource, identity_of(live), live["metadata"]["uid"])], PATIENCE) == []


def test_a_cut_watch_is_resumed_where_it_was(wire: Wire, through: Callable[..., Api], apply: Apply, kind: Kind, namespace: str) -> None:
    live = apply(config_map(namespace, "a"))

    change = once(lambda: apply(config_map(namespace, "a", {"a": "done"})), lambda: wire.cut() > 0)
    assert until(through(), [(kind("v1", "ConfigMap"), identity_of(live))], done, PATIENCE, change) == []
    watches = [path for _, path in wire.seen if "watch=true" in path]
    assert len(wire.seen) == 1 + len(watches)
    assert len(watches) >= 2


def test_an_expired_watch_lists_again(wire: Wire, through: Callable[..., Api], apply: Apply, kind: Kind, namespace: str) -> None:
    live = apply(config_map(namespace, "a"))
    wire.only = lambda method, path: "watch=true" in path

    def expire(handler: Handler) -> bool:
        apply(config_map(namespace, "a", {"a": "done"}))
        return refuse(410)(handler)

    wire.tricks = [expire]
    assert until(through(), [(kind("v1", "ConfigMap"), identity_of(live))], done, PATIENCE) == []
    assert len([path for _, path in wire.seen if "watch=true" not in path]) == 2


def test_a_kind_that_cant_be_watched_is_listed_again(
    wire: Wire, through: Callable[..., Api], apply: Apply, kind: Kind, namespace: str
) -> None:
    live = apply(config_map(namespace, "a"))
    resource = replace(kind("v1", "ConfigMap"), verbs=frozenset({"list", "delete"}))
    looks: list[bool] = []

    def ready(item: dict[str, Any]) -> bool:
        looks.append(done(item))
        return looks[-1]

    change = once(lambda: apply(config_map(namespace, "a", {"a": "done"})), lambda: bool(looks))
    assert until(through(), [(resource, identity_of(live))], ready, PATIENCE, change) == []
    assert (looks[0], looks[-1]) == (False, True)
    assert not any("watch=true" in path for _, path in wire.seen)


def test_a_kind_that_isnt_served_is_gone_and_never_ready(api: Api, namespace: str) -> None:
    ghost = Resource("gone.example.com", "v1", "Ghost", "ghosts", namespaced=True)
    identity = Identity("gone.example.com", "Ghost", namespace, "g")
    assert until_gone(api, [(ghost, identity, "some-uid")], PATIENCE) == []
    assert until(api, [(ghost, identity)], done, 0.3) == [(identity, None)]


def test_stop_ends_the_wait_at_once(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
    live = apply(config_map(namespace, "a"))
    calls = [0]

    def stop() -> None:
        calls[0] += 1
        if calls[0] == 3:
            raise LeaseLost.of("Lease", "taken")

    with pytest.raises(LeaseLost):
        until(api, [(kind("v1", "ConfigMap"), identity_of(live))], done, PATIENCE, stop)
    for thread in [thread for thread in threading.enumerate() if thread.name == "watch-configmaps"]:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_denied_watch_is_an_error(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
    apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "weak", "namespace": namespace}})
    weak = Api(api.connection, impersonate=f"{namespace}/weak")
    with pytest.raises(AccessDenied):
        until(weak, [(kind("v1", "ConfigMap"), Identity("", "ConfigMap", namespace, "a"))], done, PATIENCE)
