"""The walk of managedFields: a yes is certain."""

from __future__ import annotations

from typing import Any

import pytest

from handler.plan.owned import is_same, owners, union
from tests.unit.plan.samples import document, entry, fields_of, live

CONTAINER = {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:image": {}}}}}
PORTS = {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}}}
FINALIZERS = {"f:metadata": {"f:finalizers": {'v:"a"': {}}}}


def pod(image: str) -> dict[str, Any]:
    return document("Pod", spec={"containers": [{"name": "web", "image": image}]})


def test_what_we_own_and_git_declares_alike_is_the_same() -> None:
    body = document(data={"a": "1"})
    assert is_same(body, live(body))


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ({"a": "1", "b": "2"}, {"a": "1"}),
        ({"a": "1"}, {"a": "1", "b": "2"}),
        ({"a": "1"}, {"a": "2"}),
        ({"a": True}, {"a": 1}),
        ({"a": {"b": "1"}}, {"a": "1"}),
    ],
)
def test_other_values_or_another_extent_are_not_the_same(declared: dict[str, Any], found: dict[str, Any]) -> None:
    assert not is_same(document(data=declared), live(document(data=found)))


def test_an_object_we_never_applied_is_undecided() -> None:
    body = document(data={"a": "1"})
    assert not is_same(body, live(body) | {"metadata": {**live(body)["metadata"], "managedFields": []}})


def test_an_entry_of_another_version_is_undecided() -> None:
    body = document(data={"a": "1"})
    found = live(body)
    found["metadata"]["managedFields"][0]["apiVersion"] = "v2"
    assert not is_same(body, found)


@pytest.mark.parametrize("other", [{"manager": "kubectl"}, {"operation": "Update"}, {"subresource": "status"}])
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


def test_set_members_are_compared_one_by_one() -> None:
    body = document(metadata={"finalizers": ["a"]})
    assert is_same(body, live(body, FINALIZERS))
    assert not is_same(body, live(body, {"f:metadata": {"f:finalizers": {'v:"b"': {}}}}))


def test_positions_and_shapes_that_dont_fit_are_undecided() -> None:
    body = document(data=["a"])
    assert not is_same(body, live(body, {"f:data": {"i:0": {}}}))
    assert not is_same(document(data="a"), live(document(data="a"), {"f:data": {"f:x": {}}}))
    assert not is_same(document(data={"a": "1"}), live(document(data="1"), {"f:data": {"f:a": {}}}))
    assert not is_same(document(data=["a"]), live(document(data="1"), {"f:data": {'v:"a"': {}}}))


def test_a_set_of_one_dot_is_a_leaf() -> None:
    body = document(data={})
    assert is_same(body, live(body, {"f:data": {".": {}}}))


def test_the_union_of_two_sets_holds_both() -> None:
    assert union({"f:a": {"f:b": {}}}, {"f:a": {"f:c": {}}, "f:d": {}}) == {"f:a": {"f:b": {}, "f:c": {}}, "f:d": {}}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("data", "a"), ["anneal"]),
        (("data", "a", "deeper"), ["anneal"]),
        (("data", "b"), []),
        (("items", (("name", "web"),), "image"), ["hpa"]),
        (("items", (("name", "other"),)), []),
        (("set", 3), ["hpa"]),
    ],
)
def test_owners_are_found_by_path(path: tuple[Any, ...], found: list[str]) -> None:
    fields = {"f:items": {'k:{"name":"web"}': {"f:image": {}}}, "f:set": {"v:3": {}}}
    item = {"metadata": {"managedFields": [entry(fields_of({"data": {"a": 1}})), entry(fields, "hpa", "Update")]}}
    assert [manager for manager, _ in owners(item, path)] == found
