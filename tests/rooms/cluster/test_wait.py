"""Waiting: one LIST and one WATCH, through cut connections and finalizers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.cluster.wait import until, until_gone
from handler.cluster.write import Writer
from handler.model.errors import AccessDenied, LeaseLost
from handler.model.names import Identity, identity_of
from handler.model.resource import Resource
from tests.rooms.cluster.conftest import Apply, Kind, config_map
from tests.rooms.cluster.wire import Wire, refuse


def later(seconds: float, act: Callable[[], Any]) -> threading.Timer:
    timer = threading.Timer(seconds, act)
    timer.start()
    return timer


def done(item: dict[str, Any]) -> bool:
    return bool(item["data"]["a"] == "done")


def test_what_stands_already_costs_one_request(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
    apply(config_map(namespace, "a", {"a": "done"}))
    before = api.requests
    assert until(api, [(kind("v1", "ConfigMap"), Identity("", "ConfigMap", namespace, "a"))], done, 5) == []
    assert api.requests - before <= 2


def test_a_change_is_seen_by_one_list_and_one_watch_for_many(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
    resource = kind("v1", "ConfigMap")
    wanted = [(resource, identity_of(apply(config_map(namespace, f"c{i}")))) for i in range(5)]
    watcher = Api(api.connection)
    timers = [later(0.3, lambda i=i: apply(config_map(namespace, f"c{i}", {"a": "done"}))) for i in range(5)]  # type: ignore[misc] # mypy can't type a default
    assert until(watcher, wanted, done, 10) == []
    assert watcher.requests == 2
    for timer in timers:
        timer.join()


def test_what_isnt_ready_in_time_is_returned_as_last_seen(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
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
    assert until(api, wanted, lambda item: bool(item["status"]["phase"] == "Active"), 5) == []


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
    release = later(0.2, lambda: _release(api, resource, namespace, "held"))
    assert until_gone(api, wanted, 10) == []
    release.join()


def test_an_object_created_anew_counts_as_gone(api: Api, apply: Apply, writer: Writer, kind: Kind, namespace: str) -> None:
    resource = kind("v1", "ConfigMap")
    old = apply(config_map(namespace, "a"))
    writer.delete(resource, identity_of(old), old["metadata"]["uid"])
    apply(config_map(namespace, "a"))
    assert until_gone(api, [(resource, identity_of(old), old["metadata"]["uid"])], 5) == []


def test_a_deleted_namespace_goes(api: Api, writer: Writer, apply: Apply, kind: Kind, namespace: str) -> None:
    live = apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{namespace}-b"}})
    resource = kind("v1", "Namespace")
    writer.delete(resource, identity_of(live), live["metadata"]["uid"])
    assert until_gone(api, [(resource, identity_of(live), live["metadata"]["uid"])], 30) == []


def test_a_cut_watch_is_resumed_where_it_was(wire: Wire, through: Callable[..., Api], apply: Apply, kind: Kind, namespace: str) -> None:
    live = apply(config_map(namespace, "a"))

    def cut_then_change() -> None:
        while not wire.cut():
            time.sleep(0.02)
        apply(config_map(namespace, "a", {"a": "done"}))

    changing = later(0.1, cut_then_change)
    assert until(through(), [(kind("v1", "ConfigMap"), identity_of(live))], done, 10) == []
    changing.join()
    watches = [path for _, path in wire.seen if "watch=true" in path]
    assert len(wire.seen) == 1 + len(watches)
    assert len(watches) >= 2


def test_an_expired_watch_lists_again(wire: Wire, through: Callable[..., Api], apply: Apply, kind: Kind, namespace: str) -> None:
    live = apply(config_map(namespace, "a"))
    wire.only = lambda method, path: "watch=true" in path
    wire.tricks = [refuse(410)]
    changing = later(0.5, lambda: apply(config_map(namespace, "a", {"a": "done"})))
    assert until(through(), [(kind("v1", "ConfigMap"), identity_of(live))], done, 10) == []
    changing.join()
    assert len([path for _, path in wire.seen if "watch=true" not in path]) == 2


def test_a_kind_that_cant_be_watched_is_listed_again(
    wire: Wire, through: Callable[..., Api], apply: Apply, kind: Kind, namespace: str
) -> None:
    live = apply(config_map(namespace, "a"))
    resource = replace(kind("v1", "ConfigMap"), verbs=frozenset({"list", "delete"}))
    changing = later(0.3, lambda: apply(config_map(namespace, "a", {"a": "done"})))
    assert until(through(), [(resource, identity_of(live))], done, 10) == []
    changing.join()
    assert not any("watch=true" in path for _, path in wire.seen)


def test_a_kind_that_isnt_served_is_gone_and_never_ready(api: Api, namespace: str) -> None:
    ghost = Resource("gone.example.com", "v1", "Ghost", "ghosts", namespaced=True)
    identity = Identity("gone.example.com", "Ghost", namespace, "g")
    assert until_gone(api, [(ghost, identity, "some-uid")], 5) == []
    assert until(api, [(ghost, identity)], done, 0.3) == [(identity, None)]


def test_stop_ends_the_wait_at_once(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
    live = apply(config_map(namespace, "a"))
    calls = [0]

    def stop() -> None:
        calls[0] += 1
        if calls[0] == 3:
            raise LeaseLost.of("Lease", "taken")

    before = threading.active_count()
    with pytest.raises(LeaseLost):
        until(api, [(kind("v1", "ConfigMap"), identity_of(live))], done, 60, stop)
    assert threading.active_count() == before


def test_a_denied_watch_is_an_error(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
    apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "weak", "namespace": namespace}})
    weak = Api(api.connection, impersonate=f"{namespace}/weak")
    with pytest.raises(AccessDenied):
        until(weak, [(kind("v1", "ConfigMap"), Identity("", "ConfigMap", namespace, "a"))], done, 5)


def _release(api: Api, resource: Resource, namespace: str, name: str) -> None:
    api.patch(resource.path(namespace, name), {"metadata": {"finalizers": None}}, "application/merge-patch+json")
