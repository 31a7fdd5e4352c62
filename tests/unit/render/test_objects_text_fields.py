"""What the server takes as text only is found where it is written, and its value isn't repeated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.model.errors import Problem
from handler.model.manifest import Manifest
from handler.render.documents import documents
from handler.render.objects import objects

VALUES = {"a number": 864253, "true or false": True, "a list": [864253], "a mapping": {"a": 864253}}


def told(body: dict[str, Any]) -> list[str]:
    text = f"# one\n---\n{json.dumps(body)}\n"
    rows = list(objects(documents(text.encode(), "a.yaml")))
    return [str(row) for row in rows if isinstance(row, Problem)] if not all(isinstance(row, Manifest) for row in rows) else []


def workload(kind: str, api_version: str, value: Any, *path: str, field: str = "containers") -> dict[str, Any]:
    spec: Any = {"spec": {field: [{"name": "web", "env": [{"name": "MODE", "value": "x"}, {"name": "DB_PASSWORD", "value": value}]}]}}
    for step in reversed(path):
        spec = {step: spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **spec}


@pytest.mark.parametrize("seen", VALUES)
def test_a_variable_that_isnt_text_is_named_with_its_container(seen: str) -> None:
    (problem,) = told(workload("Deployment", "apps/v1", VALUES[seen], "spec", "template"))
    assert problem.startswith(f"a.yaml:3: Deployment/a: spec.template.spec.containers[web].env[DB_PASSWORD].value is {seen}, not text; ")
    assert problem.endswith("(valueFrom)" if seen in ("a list", "a mapping") else 'quote it: value: "…"')
    assert "864253" not in problem


@pytest.mark.parametrize(
    ("kind", "api_version", "path"),
    [
        ("Pod", "v1", ()),
        ("PodTemplate", "v1", ("template",)),
        ("StatefulSet", "apps/v1", ("spec", "template")),
        ("DaemonSet", "apps/v1", ("spec", "template")),
        ("Job", "batch/v1", ("spec", "template")),
        ("CronJob", "batch/v1", ("spec", "jobTemplate", "spec", "template")),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers", "ephemeralContainers"])
def test_every_kind_with_pods_is_looked_at_and_every_container(kind: str, api_version: str, path: tuple[str, ...], field: str) -> None:
    (problem,) = told(workload(kind, api_version, 1, *path, field=field))
    assert f"{'.'.join((*path, 'spec'))}.{field}[web].env[DB_PASSWORD].value is a number" in problem
    assert told(workload(kind, api_version, "1", *path, field=field)) == []
    assert told(workload(kind, api_version, None, *path, field=field)) == [], "the server takes null for none"


def test_kinds_of_others_are_left_to_their_schema() -> None:
    assert told(workload("Deployment", "example.com/v1", 1, "spec", "template")) == []


@pytest.mark.parametrize("field", ["data", "binaryData"])
def test_a_config_map_holds_texts(field: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, field: {"b": 864253, "c": "x", "d": None}}
    assert told(body) == [f'a.yaml:3: ConfigMap/a: {field}.b is a number, not text; quote it: b: "…"']
    assert told({**body, field: [1]}) == [f"a.yaml:3: ConfigMap/a: {field} is a list, not a mapping"]


@pytest.mark.parametrize("marks", ["labels", "annotations"])
def test_the_marks_of_a_pod_template_are_texts(marks: str) -> None:
    body = workload("Deployment", "apps/v1", "x", "spec", "template")
    body["spec"]["template"]["metadata"] = {marks: {"version": 1.5}}
    assert told(body) == [f'a.yaml:3: Deployment/a: spec.template.metadata.{marks}.version is a number, not text; quote it: version: "…"']


@pytest.mark.parametrize("env", [None, "x", [1], [{"value": 1}], {"a": 1}])
def test_other_shapes_are_the_servers_to_judge(env: Any) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"env": env}, 7]}}
    assert all("containers[?].env[?].value is a number" in each for each in told(body))
