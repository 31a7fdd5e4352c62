"""The walk of managedFields: a yes is certain."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.plan.managed_fields import Fields, is_applied, is_same, owners, union
from tests.unit.plan.samples import document, entry, fields_of, live

CONTAINER: dict[str, Any] = {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:image": {}}}}}
PORTS: dict[str, Any] = {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}}}


def pod(image: str) -> dict[str, Any]:
    return document("Pod", spec={"containers": [{"name": "web", "image": image}]})


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ({"a": "1", "b": "2"}, {"a": "1"}),
        ({"a": "1"}, {"a": "1", "b": "2"}),
        ({"a": "1"}, {"a": "2"}),
        ({"a": True}, {"a": 1}),
        ({"a": {"b": "1"}}, {"a": "1"}),
        ({"a": [True]}, {"a": [1]}),
        ({"a": [{"b": 0}]}, {"a": [{"b": False}]}),
        ({"a": ["1"]}, {"a": ["1", "2"]}),
    ],
)
def test_other_values_or_another_extent_are_not_the_same(declared: dict[str, Any], found: dict[str, Any]) -> None:
    assert not is_same(document(data=declared), live(document(data=found)))


@pytest.mark.parametrize("other", [{"manager": "kubectl"}, {"operation": "Update"}, {"subresource": "status"}, {"apiVersion": "v2"}])
def test_only_our_apply_entry_of_the_object_counts(other: dict[str, str]) -> None:
    body = document(data={"a": "1"})
    found = live(body)
    found["metadata"]["managedFields"][0] |= other
    assert not is_same(body, found)


def test_list_elements_are_found_by_their_keys() -> None:
    found = live(pod("web:1"), CONTAINER)
    found["spec"]["containers"].insert(0, {"name": "sidecar", "image": "injected"})
    assert is_same(pod("web:1"), found)
    assert not is_same(pod("web:2"), found)


def test_elements_in_another_order_are_not_the_same_wherever_others_have_theirs() -> None:
    body = document("Pod", spec={"containers": [{"name": "web"}, {"name": "api"}]})
    fields: dict[str, Any] = {"f:spec": {"f:containers": {f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}} for name in ("api", "web")}}}
    found = live(body, fields)
    found["spec"]["containers"].insert(1, {"name": "sidecar"})
    assert is_same(body, found)
    found["spec"]["containers"].reverse()
    assert not is_same(body, found)
    assert is_same(document(data=[1, 2]), live(document(data=[1, 3, 2]), {"f:data": {"v:2": {}, "v:1": {}}}))
    assert not is_same(document(data=[1, 2]), live(document(data=[2, 1]), {"f:data": {"v:1": {}, "v:2": {}}}))


def test_a_list_of_another_length_is_undecided() -> None:
    body = pod("web:1")
    body["spec"]["containers"].append({"name": "two"})
    assert not is_same(body, live(body, CONTAINER))


def test_a_missing_protocol_counts_as_tcp() -> None:
    body = document("Service", spec={"ports": [{"port": 80}]})
    found = live(body, PORTS)
    found["spec"]["ports"] = [{"port": 80, "protocol": "TCP", "nodePort": 30000}]
    assert is_same(body, found)


def test_a_keyed_element_that_isnt_there_is_not_the_same() -> None:
    body = document("Service", spec={"ports": [{"port": 81}]})
    assert not is_same(body, live(body, PORTS))


def test_a_set_member_is_not_another_that_python_calls_equal() -> None:
    fields: dict[str, Any] = {"f:data": {"v:1": {}}}
    assert is_same(document(data=[1]), live(document(data=[1]), fields))
    assert not is_same(document(data=[True]), live(document(data=[1]), fields))
    assert not is_same(document(data=[1]), live(document(data=[True]), fields))


def test_positions_and_shapes_that_dont_fit_are_undecided() -> None:
    body = document(data=["a"])
    assert not is_same(body, live(body, {"f:data": {"i:0": {}}}))
    assert not is_same(document(data="a"), live(document(data="a"), {"f:data": {"f:x": {}}}))
    assert not is_same(document(data={"a": "1"}), live(document(data="1"), {"f:data": {"f:a": {}}}))
    assert not is_same(document(data=["a"]), live(document(data="1"), {"f:data": {'v:"a"': {}}}))


def test_a_set_of_one_dot_is_a_leaf() -> None:
    body = document(data={})
    assert is_same(body, live(body, {"f:data": {".": {}}}))


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ({"f:a": {"f:b": {}}}, {"f:a": {"f:c": {}}, "f:d": {}}, {"f:a": {"f:b": {}, "f:c": {}}, "f:d": {}}),
        ({"f:a": {}}, {"f:a": {"f:b": {}}}, {"f:a": {".": {}, "f:b": {}}}),
        ({"f:a": {"f:b": {}}}, {"f:a": {}}, {"f:a": {".": {}, "f:b": {}}}),
        ({"f:a": {}}, {"f:a": {}}, {"f:a": {}}),
        ({}, {"f:a": {}}, {"f:a": {}}),
    ],
)
def test_the_union_of_two_sets_holds_both(first: Fields, second: Fields, both: Fields) -> None:
    assert union(first, second) == both


LIVE = {
    "data": {"a": {"deeper": 1}},
    "spec": {
        "items": [{"name": "side"}, {"name": "web", "image": "x"}],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}, {"name": "dns", "port": 53, "protocol": "UDP"}],
        "set": ["one", "two"],
        "text": "t",
    },
}
OWNED: dict[str, Any] = {
    "f:spec": {
        "f:items": {'k:{"name":"web"}': {"f:image": {}}},
        "f:ports": {'k:{"port":53,"protocol":"UDP"}': {"f:name": {}}},
        "f:set": {'v:"two"': {}},
    }
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("data", "a"), ["anneal"]),
        (("data", "a", "deeper"), ["anneal"]),
        (("data", "b"), []),
        (("spec", "items", (("name", "web"),), "image"), ["hpa"]),
        (("spec", "items", 1, "image"), ["hpa"]),
        (("spec", "items", 0, "image"), []),
        (("spec", "items", 9, "image"), []),
        (("spec", "items", (("name", "other"),)), []),
        (("spec", "ports", (("name", "dns"),), "name"), ["hpa"]),
        (("spec", "ports", (("name", "http"),), "name"), []),
        (("spec", "set", 1), ["hpa"]),
        (("spec", "set", 0), []),
        (("spec", "text", 0), []),
        (("spec", "text", "deeper", "still"), []),
        (("spec", "set", "field"), []),
    ],
)
def test_owners_are_found_by_path(path: tuple[Any, ...], found: list[str]) -> None:
    bare = {"manager": "empty"}
    item = LIVE | {"metadata": {"managedFields": [entry(fields_of({"data": {"a": 1}})), bare, entry(OWNED, "hpa", "Update")]}}
    assert [manager for manager, _ in owners(item, path) if manager != "empty"] == found


scalars = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "0", "1"])
keys = st.sampled_from("abc")
atoms = st.lists(scalars, max_size=2)
trees = st.dictionaries(
    keys, st.recursive(scalars | atoms, lambda inner: st.dictionaries(keys, inner, max_size=2), max_leaves=5), max_size=3
)


def paths(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every path of a tree, its root included."""
    yield path
    if isinstance(node, dict):
        for key, inner in node.items():
            yield from paths(inner, (*path, key))


def mutations(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tree with one value replaced, one key added, one key removed: at every place."""
    for path in paths(data):
        for how in ("replace", "add", "remove"):
            changed = copy.deepcopy(data)
            parent: Any = changed
            for step in path[:-1]:
                parent = parent[step]
            here = parent[path[-1]] if path else changed
            if how == "add" and isinstance(here, dict):
                here["new"] = "1"
            elif how == "replace" and path:
                parent[path[-1]] = [here]
            elif how == "remove" and path:
                del parent[path[-1]]
            else:
                continue
            yield changed


@settings(max_examples=30, deadline=None)
@given(trees)
def test_an_applied_object_has_no_drift_and_any_single_change_is_drift(data: dict[str, Any]) -> None:
    body = document(data=data)
    assert is_same(body, live(body))
    for changed in mutations(data):
        assert not is_same(document(data=changed), live(body)), changed
        assert not is_same(body, live(body) | {"data": changed}) or _only_adds(data, changed), changed


def _only_adds(data: dict[str, Any], changed: dict[str, Any]) -> bool:
    """Whether live has gained a field beside ours: another's, and none of our business."""
    return all(
        key in changed and (changed[key] == value or (isinstance(value, dict) and value and _only_adds(value, changed[key])))
        for key, value in data.items()
    )


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry({"f:data": {"f:a": {}}})], True),
        ([entry({"f:data": {"f:b": {}}})], False),
        ([entry({"f:data": {"f:a": {}}}, "kubectl")], False),
        ([{**entry({"f:data": {"f:a": {}}}), "operation": "Update"}], False),
        ([entry({"f:data": {}})], True),
        ([entry({"f:data": {}}), entry({"f:data": {"f:a": {}}}, "kubectl")], False),
        ([entry({})], False),
        ([], False),
    ],
    ids=["ours", "another field", "another's", "no apply", "a leaf", "a leaf and another's", "nothing", "nobody's"],
)
def test_a_field_is_as_our_apply_wrote_it(entries: list[dict[str, Any]], expected: bool) -> None:
    live = {"metadata": {"managedFields": entries}, "data": {"a": "1"}}
    assert is_applied(live, ("data", "a")) is expected
