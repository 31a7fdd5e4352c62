"""Statuses of instances on a real API server: with a status subresource and without one; no status changes what an instance is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from handler.app.instance_statuses import InstanceStatuses
from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.wait_until import until, until_gone
from handler.cluster.write import Writer
from handler.config.git_settings import Repository
from handler.config.instance_target import InstanceTarget, instance_target
from handler.config.settings import Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.event import Job
from handler.model.instance import Instance
from handler.model.names import identity_of
from handler.model.result import Outcome, Result
from handler.model.run_event import RunEnded, RunPhase
from handler.state.record import Attempt, Progress, RunStatus, State, StepRecord
from handler.state.record_format import stamp
from tests.patience import PATIENCE
from tests.rooms.cluster.conftest import Apply, Kind, refreshed

COMMIT, NOON = "a" * 40, "2026-03-01T12:00:00Z"
CONDITION = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        **{name: {"type": "string"} for name in ("reason", "message", "name", "currentStatus")},
        "type": {"type": "string", "maxLength": 316},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64"},
    },
}
STATUS = {
    "type": "object",
    "properties": {
        "observedGeneration": {"type": "integer", "format": "int64"},
        "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": CONDITION},
    },
}
"""The block of the docs."""


def crd(group: str, kind: str, *, subresource: bool) -> dict[str, Any]:
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": STATUS}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, **({"subresources": {"status": {}}} if subresource else {})}
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def established(live: dict[str, Any]) -> bool:
    rows = (live.get("status") or {}).get("conditions") or ()
    return any(row["type"] == "Established" and row["status"] == "True" for row in rows)


@dataclass
class Ways:
    """What leads to a cluster; the record is `state`."""

    api: Api
    found: Discovery
    state: State | None = None

    def brief_api(self, _target: Target, *, impersonated: bool = False) -> Api:
        return self.api

    def discovery(self, _target: Target) -> Discovery:
        return self.found

    def brief_store(self, _target: Target) -> Any:
        ways = self
        return type("Store", (), {"read": lambda _self: type("Stored", (), {"state": ways.state})})()


@pytest.fixture(params=[True, False], ids=["subresource", "whole"])
def widget(
    request: pytest.FixtureRequest, apply: Apply, api: Api, discovery: Discovery, writer: Writer, kind: Kind, namespace: str
) -> Iterator[dict[str, Any]]:
    """A live object of a kind with, or without, a status subresource."""
    group = f"{namespace}.example.com"
    definition = apply(crd(group, "Widget", subresource=request.param))
    resource, identity = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"), identity_of(definition)
    assert until(api, [(resource, identity)], established, PATIENCE) == []
    refreshed(discovery, lambda: discovery.find(f"{group}/v1", "Widget"))
    apply({"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": namespace}, "spec": {"size": 1}})
    live = api.get(kind(f"{group}/v1", "Widget").path(namespace, "a"))
    assert live
    yield live
    writer.delete(resource, identity, definition["metadata"]["uid"])
    assert until_gone(api, [(resource, identity, definition["metadata"]["uid"])], PATIENCE) == []


def instance_of(live: dict[str, Any]) -> InstanceTarget:
    watched = WatchedResource("widget", live["apiVersion"], "Widget")
    template = Target(
        "grafana",
        Repository("https://git.example.com/grafana.git"),
        (live["metadata"]["namespace"],),
        trigger=TriggerSettings(ResourceTrigger("widget", (watched,))),
    )
    return instance_target(template, Instance.of(live))


def test_how_a_run_goes_stands_in_the_status_and_changes_no_instance(api: Api, discovery: Discovery, widget: dict[str, Any]) -> None:
    target = instance_of(widget)
    assert target.instance.body["spec"] == {"size": 1}
    known = discovery.find(widget["apiVersion"], "Widget")
    assert known
    steps = (StepRecord("the app", "web", "web", "CreateOrUpdate", NOON), StepRecord("the app", "api", "api", "CreateOrUpdate"))
    state = State(
        target.name, "default", "cluster", attempt=Attempt(COMMIT, "r", "s", "t", NOON), rollout=Progress(COMMIT, "d", NOON, steps=steps)
    )
    ways = Ways(api, discovery, state)
    statuses = InstanceStatuses(ways, lambda name: target if name == target.name else None)

    def read() -> dict[str, Any]:
        assert statuses.settle(PATIENCE)
        live = api.get(known.path(widget["metadata"]["namespace"], "a"))
        assert live
        return live

    statuses.hear(RunPhase(target.name, "run", COMMIT, "applying", generation=target.instance.generation))
    began = read()
    found = {each["type"]: (each["status"], each["currentStatus"], each["name"]) for each in began["status"]["conditions"]}
    group = next(kind for kind in found if kind.startswith("Rollout.Group."))
    assert found["Ready"] == ("Unknown", "In Progress", target.name)
    assert found[group] == ("Unknown", "In Progress", "the app")
    assert [found[f"{group.replace('Group', 'Step')}.{name}"][1] for name in ("web", "api")] == ["In Progress", "Not Started"]
    ways.state = replace(state, attempt=None, commit=COMMIT, rollout=None, status=RunStatus("applied", since=stamp(0)))
    statuses.hear(RunEnded(Job(target.name, "tick"), Result(target.name, Outcome.APPLIED, recorded=True, generation=1), 1.0))
    over = read()
    assert [(each["type"], each["status"]) for each in over["status"]["conditions"]] == [("Ready", "True"), ("Rollout", "True")]
    assert Instance.of(over).digest == target.instance.digest
    assert over["status"].get("observedGeneration") == (1 if known.status else None)
    assert not known.status or over["metadata"]["generation"] == 1
    statuses.look(target.name)
    assert read()["metadata"]["resourceVersion"] == over["metadata"]["resourceVersion"]


def test_a_status_that_would_empty_managed_fields_isnt_written(
    api: Api, apply: Apply, discovery: Discovery, kind: Kind, widget: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing converts v2, whose objects have a field that v1 lacks, back into the version in which others have written."""
    group, space = widget["apiVersion"].partition("/")[0], widget["metadata"]["namespace"]
    path = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").path("", f"widgets.{group}")
    definition = api.get(path)
    assert definition
    (first,) = definition["spec"]["versions"]
    sizes: dict[str, Any] = {"size": {"type": "integer"}}
    specs = {"v1": sizes, "v2": {**sizes, "extra": {"type": "string", "default": "two"}}}
    definition["spec"]["versions"] = [
        {**first, "name": name, "storage": name == "v1", "schema": {"openAPIV3Schema": with_spec(spec)}} for name, spec in specs.items()
    ]
    api.put(path, definition)
    live = refreshed(
        discovery, lambda: api.get(kind(f"{group}/v2", "Widget").path(space, "a")) if discovery.find(f"{group}/v2", "Widget") else None
    )
    target = instance_of(live)
    ways = Ways(api, discovery, State(target.name, "default", "cluster", commit=COMMIT, status=RunStatus("applied", since=stamp(0))))
    statuses = InstanceStatuses(ways, lambda name: target if name == target.name else None)
    statuses.hear(RunEnded(Job(target.name, "tick"), Result(target.name, Outcome.APPLIED, recorded=True, generation=1), 1.0))
    assert statuses.settle(PATIENCE)
    after = api.get(kind(f"{group}/v2", "Widget").path(space, "a"))
    assert after
    assert after["metadata"] == live["metadata"]
    assert "would forget who wrote its fields" in str([record.__dict__.get("fields") for record in caplog.records])


def with_spec(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties, "default": {}}, "status": STATUS}}
