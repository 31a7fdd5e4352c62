"""Fields that differ, as people read them."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.model.hidden_fields import HiddenFields
from handler.model.manifest import Manifest
from handler.model.names import GroupKind
from handler.plan.diff import differs, field_changes
from tests.unit.plan.samples import document, entry

DEPLOYMENT, SECRET = GroupKind("apps", "Deployment"), GroupKind("", "Secret")


def containers(*items: dict[str, Any]) -> dict[str, Any]:
    return document("Deployment", spec={"containers": list(items)})


def test_an_image_is_named_by_its_container_and_its_owner() -> None:
    before, after = containers({"name": "web", "image": "a"}), containers({"name": "web", "image": "b"})
    fields: dict[str, Any] = {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:image": {}}}}}
    before["metadata"]["managedFields"] = [entry(fields), entry(fields, "kubectl-edit", "Update")]
    (change,) = field_changes(DEPLOYMENT, before, after)
    assert (change.path, change.declared, change.live, change.manager) == ("spec.containers[name=web].image", "b", "a", "kubectl-edit")


def test_another_order_alone_is_shown_whole() -> None:
    before, after = containers({"name": "a"}, {"name": "b"}), containers({"name": "b"}, {"name": "a"})
    assert [c.path for c in field_changes(DEPLOYMENT, before, after)] == ["spec.containers"]


def test_elements_are_counted_when_names_repeat() -> None:
    before, after = containers({"name": "a", "x": 1}, {"name": "a", "x": 2}), containers({"name": "a", "x": 1}, {"name": "a", "x": 3})
    assert [c.path for c in field_changes(DEPLOYMENT, before, after)] == ["spec.containers[1]"]


def test_a_variable_written_twice_shows_no_value_of_a_telling_name() -> None:
    env = [{"name": "DB_PASSWORD", "value": "CANARY"}, {"name": "A", "value": "1"}, {"name": "A", "value": "1"}]
    before, after = document("Deployment", spec={"env": env}), document("Deployment", spec={"env": [{"name": "DB_PASSWORD"}, *env[1:]]})
    (change,) = field_changes(DEPLOYMENT, before, after)
    assert (change.path, change.live) == ("spec.env[0]", '{"name": "DB_PASSWORD", "value": "***"}')
    after["spec"]["env"] = [{"value": "x"}, *env[1:]]
    assert "CANARY" not in repr(field_changes(DEPLOYMENT, before, after))


def test_a_boolean_is_not_a_number() -> None:
    before, after = document(spec={"a": [1]}), document(spec={"a": [True]})
    assert differs(before, after)
    assert [(c.path, c.live, c.declared) for c in field_changes(DEPLOYMENT, before, after)] == [("spec.a[0]", "1", "true")]


def test_a_port_is_named_by_its_number_and_its_owner_found() -> None:
    fields: dict[str, Any] = {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {"f:nodePort": {}}}}}
    before = document("Service", spec={"ports": [{"port": 80, "protocol": "TCP", "nodePort": 3}]})
    after = document("Service", spec={"ports": [{"port": 80, "protocol": "TCP", "nodePort": 4}]})
    before["metadata"]["managedFields"] = [entry(fields, "cloud", "Update")]
    (change,) = field_changes(GroupKind("", "Service"), before, after)
    assert (change.path, change.manager) == ("spec.ports[port=80,protocol=TCP].nodePort", "cloud")


def test_an_absent_field_differs_from_null() -> None:
    before, after = document(spec={"list": [], "map": {}}), document(spec={"list": [None], "map": {"a": None}})
    assert [(c.path, c.live, c.declared) for c in field_changes(DEPLOYMENT, before, after)] == [
        ("spec.list[0]", "", ""),
        ("spec.map.a", "", ""),
    ]


def test_elements_of_what_is_never_shown_arent_named_by_their_values() -> None:
    (change,) = field_changes(SECRET, document("Secret", other=[]), document("Secret", other=[{"name": "CANARY"}]))
    assert (change.path, change.declared) == ("other", "***")


values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["CANARY-1", "CANARY-2"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "name", "value", "key"]), inner, max_size=2),
    max_leaves=5,
)
bodies = st.fixed_dictionaries({"data": values, "stringData": values, "other": values, "spec": values})


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(bodies, bodies)
def test_equal_bodies_differ_nowhere_and_different_ones_somewhere(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = document(**one), document(**other)
    assert not differs(first, first)
    assert field_changes(DEPLOYMENT, first, copy.deepcopy(first)) == ()
    assert bool(field_changes(DEPLOYMENT, first, second)) == differs(first, second) == differs(second, first)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(bodies, bodies)
def test_no_value_of_a_secret_is_ever_in_a_change(one: dict[str, Any], other: dict[str, Any]) -> None:
    annotated = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "CANARY", "note": "CANARY"}}
    found = field_changes(SECRET, document("Secret", metadata=annotated, **one), document("Secret", **other))
    assert "CANARY" not in repr(found)


def test_status_and_server_set_metadata_are_no_drift() -> None:
    assert not differs(document(status={"a": 1}, metadata={"generation": 1}), document(status={"a": 2}, metadata={"generation": 2}))
    assert differs(document(data={"a": "1"}), document(data={"a": "2"}))


def test_a_secret_shows_only_that_it_differs() -> None:
    before = document("Secret", data={"key": "Q0FOQVJZ"}, metadata={"annotations": {"note": "CANARY"}, "labels": {"a": "1"}})
    after = document("Secret", data={"key": "Q0FOQVJZMg=="}, metadata={"annotations": {"note": "CANARY2"}, "labels": {"a": "2"}})
    shown = {c.path: (c.live, c.declared) for c in field_changes(SECRET, before, after)}
    assert shown == {"data.key": ("***", "***"), "metadata.annotations.note": ("***", "***"), "metadata.labels.a": ("1", "2")}


def test_another_order_is_named_beside_what_else_differs() -> None:
    before, after = containers({"name": "a"}, {"name": "b"}), containers({"name": "b"}, {"name": "a", "image": "x"})
    assert [(c.path, c.live, c.declared) for c in field_changes(DEPLOYMENT, before, after)] == [
        ("spec.containers[order]", '["[name=a]", "[name=b]"]', '["[name=b]", "[name=a]"]'),
        ("spec.containers[name=a].image", "", "x"),
    ]


def test_a_hidden_field_is_masked_on_both_sides_whatever_it_is_called() -> None:
    before = document("Deployment", spec={"replicas": 2, "containers": [{"name": "web", "args": ["a"]}]})
    after = document("Deployment", spec={"replicas": 3, "containers": [{"name": "web", "args": ["b"]}, {"name": "new", "args": ["c"]}]})
    hidden = HiddenFields.of(replace(Manifest.of(after), hidden=("/spec/replicas", "/spec/containers/1/args/0")))
    found = [(each.path, each.live, each.declared) for each in field_changes(DEPLOYMENT, before, after, hidden=hidden)]
    assert found == [
        ("spec.containers[name=web].args[0]", "a", "b"),
        ("spec.containers[name=new]", "", "***"),
        ("spec.replicas", "***", "***"),
    ]


def test_keys_within_a_hidden_field_are_one_change_of_it() -> None:
    before, after = document(data={"a": "1", "swordfish": "1"}), document(data={"a": "2", "tuna": "2"})
    found = field_changes(GroupKind("", "ConfigMap"), before, after, HiddenFields.of(replace(Manifest.of(after), hidden=("/data",))))
    assert {(each.path, each.live, each.declared) for each in found} == {("data", "***", "***"), ("data", "***", ""), ("data", "", "***")}
