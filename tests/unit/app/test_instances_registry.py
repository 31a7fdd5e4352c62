"""The registry of instances: what their renders may import of the cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.app.instances.listed_objects import is_own
from handler.app.instances.registry import Instances
from handler.config.git_settings import Repository
from handler.config.instance_target import instance_target
from handler.config.settings import Target
from handler.config.settings_shape import Json
from handler.config.trigger_settings import KeyTransformation, LabelSelector, ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.errors import OperatorError
from handler.model.instance import Instance
from handler.model.names import Identity, Resource
from handler.state.record import RecordedInstance

WIDGETS = ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"), WatchedResource("pod", "v1", "Pod")))
TEMPLATE = Target("shop", Repository("https://git.example.com/shop.git"), ("*",), trigger=TriggerSettings(WIDGETS))


class Everything:
    """Lists one object of each kind."""

    def objects(self, target: Target, watched: WatchedResource, namespace: str) -> list[dict[str, Any]]:
        return [{"kind": watched.kind, "of": target.name, "in": namespace}]


def test_own_records_and_leases_are_in_no_list() -> None:
    ours, theirs = {"app.kubernetes.io/managed-by": "anneal"}, {"app.kubernetes.io/managed-by": "helm"}
    made = [
        {"metadata": {"name": name, "labels": labels}}
        for name, labels in (("anneal-shop.ns.a", ours), ("anneal-shop", theirs), ("shop", ours), ("anneal-x", None))
    ]
    assert [is_own(each) for each in made] == [True, False, False, False]


def test_a_resource_that_isnt_watched_is_refused_with_those_that_are_and_the_block_to_add() -> None:
    live = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "ns", "uid": "u"}}
    registry = Instances(None, Everything())  # type: ignore[arg-type]  # no cluster is asked
    lists = registry.lists(instance_target(TEMPLATE, Instance.of(live)))
    assert lists("pod") == [{"kind": "Pod", "of": "shop.ns.a", "in": ""}]
    with pytest.raises(OperatorError) as caught:
        lists("other")
    (problem,) = caught.value.problems
    assert (problem.subject, problem.message) == ("target shop", "its trigger watches no resource other")
    assert problem.fix == (
        "it watches widget, pod; for another add - {name: other, apiVersion: GROUP/VERSION, kind: KIND} under trigger.resource.resources"
    )


class Served:
    """A cluster that serves the kind by no definition that may be read."""

    settings = None

    def api(self, target: Target, *, impersonated: bool = True) -> Served:
        return self

    def discovery(self, target: Target) -> Served:
        return self

    def find(self, api_version: str, kind: str) -> Resource:
        return Resource("example.com", "v1", kind, "widgets", True)

    def get(self, path: str) -> None:
        return None


def widget(name: str, namespace: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": namespace, "uid": f"u-{name}"}}


WIDGET = WatchedResource("widget", "example.com/v1", "Widget")
LEFT_OUT = {
    "whitelist and transformation": (replace(WIDGET, key_transformations=(KeyTransformation("drop", ".*/b"),)), ("ns",)),
    "namespace and selector": (
        WatchedResource("widget", "example.com/v1", "Widget", "ns", LabelSelector(Json('{"picked": "yes"}'))),
        ("*",),
    ),
}


@pytest.mark.parametrize("by", LEFT_OUT)
def test_what_the_settings_leave_out_is_no_instance_even_if_it_is_asked_for_by_name(by: str) -> None:
    main, namespaces = LEFT_OUT[by]
    template = replace(TEMPLATE, namespaces=namespaces, trigger=TriggerSettings(ResourceTrigger("widget", (main,))))
    registry = Instances(Served(), Everything())  # type: ignore[arg-type]  # as much of it as is used
    picked, elsewhere = widget("a", "ns"), widget("a", "bank")
    for each in (picked, elsewhere):
        each["metadata"]["labels"] = {"picked": "yes"}
    found = [registry.put(template, each) for each in (picked, elsewhere, widget("b", "ns"))]
    assert [each and each.name for each in found] == ["shop.ns.a", None, None]
    assert [each.name for each in registry.of_template("shop")] == ["shop.ns.a"]


def test_instances_come_go_and_leave_nothing() -> None:
    came: list[str] = []
    went: list[str] = []
    registry = Instances(Served(), Everything())  # type: ignore[arg-type]  # as much of it as is used
    registry.heard.append(lambda target: came.append(target.name))
    registry.left.append(went.append)
    for number in range(100):
        registry.put(TEMPLATE, widget(f"w{number}", "ns"))
        registry.put(TEMPLATE, widget(f"w{number}", "ns"))
    assert len(came) == 100
    registry.going("shop.ns.w0")
    going = registry.known("shop.ns.w0")
    assert going
    assert going.instance.terminating
    for name in came:
        registry.leaving[name] = RecordedInstance(Identity("example.com", "Widget", "ns", name), f"u-{name.rpartition('.')[2]}")
        registry.ended(name)
    assert went == came
    assert (registry._known, registry.leaving) == ({}, {})


def test_an_object_that_is_made_anew_during_the_end_of_the_one_before_stays_known() -> None:
    registry, went = Instances(Served(), Everything()), list[str]()  # type: ignore[arg-type]  # as much of it as is used
    registry.left.append(went.append)
    registry.leaving["shop.ns.a"] = RecordedInstance(Identity("example.com", "Widget", "ns", "a"), "u-before")
    registry._note(instance_target(TEMPLATE, Instance.of(widget("a", "ns"))))
    registry.ended("shop.ns.a")
    assert (went, registry.leaving, registry.known("shop.ns.a") is not None) == ([], {}, True)


class Definition(Served):
    """A cluster whose answers of the definition are these, one after the other."""

    def __init__(self, *answers: dict[str, Any] | None) -> None:
        self.answers = list(answers)

    def get(self, path: str) -> dict[str, Any] | None:  # type: ignore[override]  # the one above has none
        return self.answers.pop(0)


def test_a_definition_that_goes_is_asked_for_again_with_the_next_object() -> None:
    going = {"metadata": {"uid": "crd-1", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    cluster = Definition({"metadata": {"uid": "crd-1"}}, going, {"metadata": {"uid": "crd-2"}})
    registry = Instances(cluster, Everything())  # type: ignore[arg-type]  # as much of it as is used
    found = [registry.put(TEMPLATE, widget("a", "ns")), registry.put(TEMPLATE, widget("b", "ns"))]
    registry.refresh(TEMPLATE)
    found += [registry.put(TEMPLATE, widget(name, "ns")) for name in "cde"]
    assert [each and each.instance.definition for each in found] == ["crd-1", "crd-1", "crd-1", "crd-2", "crd-2"]


class Snapshot:
    """A LIST of objects, during which an event comes."""

    def __init__(self, objects: list[dict[str, Any]], meanwhile: Callable[[], object]) -> None:
        self._objects, self._meanwhile = objects, meanwhile

    def objects(self, target: Target, watched: WatchedResource, namespace: str) -> list[dict[str, Any]]:
        self._meanwhile()
        return self._objects


def sized(name: str, size: int) -> dict[str, Any]:
    return {**widget(name, "ns"), "spec": {"size": size}}


def test_a_list_that_began_before_an_event_neither_hides_nor_ages_what_the_event_has_shown() -> None:
    registry = Instances(Served(), Everything())  # type: ignore[arg-type]  # as much of it as is used

    def event() -> None:
        registry.put(TEMPLATE, sized("changed", 2))
        registry.put(TEMPLATE, sized("new", 1))
        registry.going("shop.ns.going")

    for name in ("gone", "going"):
        registry.put(TEMPLATE, sized(name, 1))
    registry.source = Snapshot([sized("changed", 1), sized("going", 1)], event)
    found = registry.look(TEMPLATE)
    assert [(each.instance.body["spec"]["size"], each.instance.terminating) for each in found.values()] == [(2, False), (1, True)]
    assert [each.name for each in registry.of_template("shop")] == ["shop.ns.changed", "shop.ns.going", "shop.ns.new"]
    registry.source = Snapshot([sized("changed", 1)], lambda: None)  # of a server that was restored from a backup
    assert [each.instance.body["spec"]["size"] for each in registry.look(TEMPLATE).values()] == [1]
