"""A custom resource against the schema of its CRD, which git alone has seen yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.model.manifest import Manifest
from handler.plan.crd_schema import check, lost, narrowed
from tests.unit.plan.samples import desired, document


def crd(schema: Any, **version: Any) -> dict[str, Any]:
    return document(
        "CustomResourceDefinition",
        "widgets.acme.io",
        "apiextensions.k8s.io/v1",
        spec={
            "group": "acme.io",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v0"}, {"name": "v1", "schema": {"openAPIV3Schema": schema}, **version}],
        },
    )


def told(schema: Any, spec: Any, version: str = "v1") -> list[str]:
    """What is said of a Widget with this spec."""
    declared = crd({"type": "object", "properties": {"spec": schema}})
    items = desired(declared, document("Widget", "w", f"acme.io/{version}", spec=spec), cluster_scoped=("CustomResourceDefinition",))
    problems = check(items[1], Manifest.of(declared))
    assert all((problem.subject, problem.place) == ("Widget/shop/w", "1.yaml:1") for problem in problems)
    return [problem.message for problem in problems]


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "spec"),
    [
        (obj(size={"type": "integer", "minimum": 1}), {"size": 1}),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {"anything": {"goes": 1}}),
        (obj(template={"type": "object", "x-kubernetes-embedded-resource": True}), {"template": {"kind": "Pod"}}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"a": "1"}),
        ({"type": "object", "additionalProperties": True}, {"a": {"b": 1}}),
        ({"type": "array", "items": obj(a={"type": "string"})}, [{"a": "1"}]),
        (obj(port={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}), {"port": "http"}),
        (obj(port={"x-kubernetes-int-or-string": True, "nullable": True}), {"port": None}),
        (obj(a={"type": "string", "nullable": True, "enum": ["x"]}), {"a": None}),
        (obj(a={"type": "string", "nullable": True}), {"a": None}),
        (obj(a={"type": "string", "default": "x"}) | {"required": ["a"]}, {}),
        (obj(a={"type": "string", "format": "date-time"}), {"a": "not a date"}),
        (
            obj(a={"allOf": [{"type": "string"}], "oneOf": [{"enum": ["x"]}], "anyOf": [{"enum": ["x"]}], "not": {"enum": ["y"]}}),
            {"a": "x"},
        ),
    ],
)
def test_a_valid_custom_resource_passes_the_crd_schema(schema: dict[str, Any], spec: Any) -> None:
    assert told(schema, spec) == []


@pytest.mark.parametrize(
    ("schema", "spec", "messages"),
    [
        (obj(size={"type": "integer"}), {"sise": 1}, ["spec.sise: unknown field"]),
        (obj(a=obj(b={"type": "array", "items": obj()})), {"a": {"b": [{"c": 1}]}}, ["spec.a.b[0].c: unknown field"]),
        ({"type": "object", "additionalProperties": obj()}, {"x": {"y": 1}}, ["spec.x.y: unknown field"]),
        ({"type": "object"}, {"x": 1}, ["spec.x: unknown field"]),
        (obj(size={"type": "integer"}), {"size": "ten"}, ["spec.size: ten breaks type: integer"]),
        (obj(size={"type": "integer"}) | {"required": ["size"]}, {}, ["spec: 'size' is a required property"]),
        (obj(a={"type": "number", "minimum": 1, "exclusiveMinimum": True}), {"a": 1}, ["spec.a: 1 breaks exclusiveMinimum: 1"]),
        (obj(a={"type": "number", "maximum": 9, "exclusiveMaximum": False}), {"a": 10}, ["spec.a: 10 breaks maximum: 9"]),
        (obj(a={"enum": ["x", "y"]}), {"a": "z"}, ['spec.a: z breaks enum: ["x", "y"]']),
        (obj(a={"type": "string", "maxLength": 2}), {"a": "abc"}, ["spec.a: abc breaks maxLength: 2"]),
        (obj(a={"not": {"enum": ["x"]}}), {"a": "x"}, ['spec.a: x breaks not: {"enum": ["x"]}']),
        (obj(port={"x-kubernetes-int-or-string": True}), {"port": 1.5}, ['spec.port: 1.5 breaks type: ["integer", "string"]']),
        (obj(a={"type": "boolean"}), {"a": None}, ["spec.a:  breaks type: boolean"]),
    ],
)
def test_a_mistake_names_its_field(schema: dict[str, Any], spec: Any, messages: list[str]) -> None:
    assert told(schema, spec) == messages


def test_a_secret_looking_value_is_not_quoted() -> None:
    schema = obj(password={"type": "integer"}, auth=obj(token={"type": "string"}) | {"maxProperties": 0})
    found = set(told(schema, {"password": "CANARY", "auth": {"token": "CANARY"}}))
    assert found == {"spec.password: *** breaks type: integer", 'spec.auth: {"token": "***"} breaks maxProperties: 0'}


def test_a_value_that_isnt_in_git_is_not_quoted() -> None:
    declared = crd({"type": "object", "properties": {"spec": obj(size={"type": "integer"}, open={"type": "integer"})}})
    spec = {"size": "CANARY", "open": "shown"}
    items = desired(declared, document("Widget", "w", "acme.io/v1", spec=spec), cluster_scoped=("CustomResourceDefinition",))
    hiding = replace(items[1], manifest=replace(items[1].manifest, hidden=("/spec/size",)))
    said = {each.message for each in check(hiding, Manifest.of(declared))}
    assert said == {"spec.size: *** breaks type: integer", "spec.open: shown breaks type: integer"}


def test_a_key_that_isnt_in_git_is_not_named() -> None:
    declared = crd({"type": "object", "properties": {"spec": obj(known=obj(), open=obj())}})
    spec = {"known": {"CANARY": 1}, "open": {"shown": 1}}
    items = desired(declared, document("Widget", "w", "acme.io/v1", spec=spec), cluster_scoped=("CustomResourceDefinition",))
    hiding = replace(items[1], manifest=replace(items[1].manifest, hidden=("/spec/known",)))
    said = [each.message for each in check(hiding, Manifest.of(declared))]
    assert "spec.open.shown: unknown field" in said
    assert "CANARY" not in " ".join(said)


def test_the_root_fields_are_the_servers() -> None:
    assert told(obj(), {}) == []
    items = desired(crd(obj()), document("Widget", "w", "acme.io/v1", extra=1), cluster_scoped=("CustomResourceDefinition",))
    assert [problem.message for problem in check(items[1], Manifest.of(crd(obj())))] == ["extra: unknown field"]


@pytest.mark.parametrize("body", [crd(None), crd("text"), crd([]), document(spec={"versions": "v1"}), document(spec="x"), document()])
def test_without_a_crd_schema_nothing_is_refused(body: dict[str, Any]) -> None:
    (item,) = desired(document())
    assert check(item, Manifest.of(body)) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$dynamicRef": "#nowhere", "$id": "http://127.0.0.1:9/", "$schema": "x"},
        {"type": "strng"},
        {"type": ["string", 5]},
        {"type": "string", "pattern": "("},
        {"type": "string", "pattern": "(a+)+$"},
        {"type": "string", "minLength": "x", "maxLength": -1},
        {"enum": "x", "minimum": "x", "maximum": True, "multipleOf": 0, "uniqueItems": "x", "required": 5},
        {"required": [1], "properties": "x", "items": True, "additionalProperties": True},
        {"allOf": ["x", 5, None], "anyOf": "x", "exclusiveMinimum": True, "nullable": True},
        {"properties": {"a": "x", "b": None}, "additionalProperties": True},
    ],
)
def test_a_schema_of_any_shape_neither_fails_nor_leads_anywhere(schema: dict[str, Any]) -> None:
    assert told(schema, "a" * 60) == []


@pytest.mark.parametrize("schema", [{"minimum": "x"}, {"maximum": True}, {"multipleOf": 0}, {"multipleOf": True}])
def test_a_bound_that_is_no_number_bounds_nothing(schema: dict[str, Any]) -> None:
    assert told(schema, 5.5) == []


def test_nested_schemas_of_any_shape_are_passed_over() -> None:
    assert told({"type": "object", "properties": {"a": "text", "b": {"items": "text"}}}, {"a": {"x": 1}, "b": [{"y": 1}]}) == []


ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
MAP = {"type": "object", "additionalProperties": {"type": "string"}}


@pytest.mark.parametrize(
    ("before", "after", "is_narrower"),
    [
        (obj(a={}), obj(a={}, b={}), False),
        (obj(a={}, b={}), obj(a={}), True),
        (obj(a=obj(b={})), obj(a=obj()), True),
        (obj(a={"type": "array", "items": obj(b={})}), obj(a={"type": "array", "items": obj()}), True),
        (obj(a=ANY), obj(a=obj()), True),
        (obj(a=MAP), obj(a=obj()), True),
        (obj(a=MAP), obj(a=MAP), False),
    ],
)
def test_a_schema_is_narrower_where_it_lacks_what_another_has(before: Any, after: Any, is_narrower: bool) -> None:
    assert [name for name, _ in narrowed(crd(before), crd(after, served=True))] == (["v1"] if is_narrower else [])


def test_a_new_version_is_compared_with_the_stored_one_unless_a_webhook_converts() -> None:
    live, new = crd(obj(a={}), storage=True), crd(obj(), storage=True)
    new["spec"]["versions"][1]["name"] = "v2"
    assert [name for name, _ in narrowed(live, new)] == ["v2"]
    new["spec"]["conversion"] = {"strategy": "Webhook"}
    assert list(narrowed(live, new)) == []
    new["spec"] |= {"conversion": {}, "versions": [{**new["spec"]["versions"][1], "storage": False}]}
    assert list(narrowed(live, new)) == [], "it is neither served nor stored"


def test_a_version_that_is_stored_from_now_on_is_compared_with_the_one_before() -> None:
    live, moved = crd(obj(a={}, b={}), storage=True), crd(obj(a={}, b={}), storage=False)
    smaller = {**moved["spec"]["versions"][0], "name": "v2", "schema": {"openAPIV3Schema": obj(a={})}}
    live["spec"]["versions"].append({**smaller, "storage": False})
    moved["spec"]["versions"].append({**smaller, "storage": True})
    assert [name for name, _ in narrowed(live, moved)] == ["v2"]


def test_a_status_may_lack_what_it_had_and_what_was_kept_as_a_whole_may_not() -> None:
    assert list(narrowed(crd(obj(status=obj(a={}))), crd(obj(status=obj(b={})), served=True))) == []
    assert [name for name, _ in narrowed(crd(obj(statusReason={})), crd(obj(), served=True))] == ["v1"], "another field"
    live = crd(obj(a={}))
    live["spec"]["preserveUnknownFields"] = True
    assert [name for name, _ in narrowed(live, crd(obj(a={}), served=True))] == ["v1"]
    mapped = obj(x={"type": "object", "additionalProperties": obj(a={})})
    assert [name for name, _ in narrowed(crd(obj(x=ANY)), crd(mapped, served=True))] == ["v1"]


@pytest.mark.parametrize("after", [obj(x=ANY | obj(a=obj())), obj(x=ANY | obj(a=obj(b={})))], ids=["without its own", "newly declared"])
def test_what_is_declared_below_what_keeps_all_is_pruned_by_its_own_schema(after: Any) -> None:
    before = obj(x=ANY | obj(a=ANY)) if after == obj(x=ANY | obj(a=obj())) else obj(x=ANY)
    assert [name for name, _ in narrowed(crd(before), crd(after, served=True))] == ["v1"]
    assert lost(after, document("Widget", x={"a": {"gone": 1}, "kept": {"y": 1}})) == {"x.a.gone"}


def test_an_instance_loses_what_a_schema_lacks_but_its_status() -> None:
    schema = obj(spec=obj(list={"type": "array", "items": obj(a={})}, kept=ANY))
    spec = {"list": [{"a": 1, "b": 2}, {"b": 3}], "kept": {"x": 1}, "note": "n"}
    assert lost(schema, document("Widget", "w", "acme.io/v1", spec=spec, status={"x": 1})) == {"spec.list[].b", "spec.note"}
    embedded = obj(spec=obj(inner={"type": "object", "x-kubernetes-embedded-resource": True}))
    assert lost(embedded, document("Widget", spec={"inner": document(data={"a": 1})})) == {"spec.inner.data"}
