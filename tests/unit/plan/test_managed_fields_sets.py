"""The algebra of field sets beside the values they speak of, as structured-merge-diff does it, and their API versions."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from handler.plan.managed_fields import (
    MEMBER,
    Fields,
    applied_over,
    at_path,
    existing,
    going,
    migrated,
    names,
    parted,
    paths,
    recorded_in,
    without,
)
from tests.unit.plan.samples import entry

A, B = 'k:{"name":"a"}', 'k:{"name":"b"}'
TCP = 'k:{"port":80,"protocol":"TCP"}'


@pytest.mark.parametrize(
    ("owned", "desired", "others", "goes"),
    [
        ({"f:x": {}}, {}, [], {"f:x": {}}),
        ({"f:x": {}}, {"x": 1}, [], {}),
        ({"f:x": {}}, {}, [{"f:x": {}}], {}),
        ({".": {}, "f:x": {"f:y": {}}}, {}, [], {"f:x": {}}),
        ({"f:x": {"f:y": {}, "f:z": {}}}, {"x": {"z": 1}}, [], {"f:x": {"f:y": {}}}),
        ({"f:x": {"f:y": {}, "f:z": {}}}, {}, [{"f:x": {"f:z": {}}}], {"f:x": {"f:y": {}}}),
        ({"f:x": {"f:y": {}}}, {"x": None}, [], {"f:x": {"f:y": {}}}),
        ({"f:x": {"f:y": {}}}, {"x": "text"}, [], {}),
        ({"f:l": {A: {".": {}, "f:name": {}}}}, {"l": [{"name": "b"}]}, [], {"f:l": {A: {}}}),
        ({"f:l": {A: {"f:v": {}}}}, {"l": [{"name": "b"}]}, [], {"f:l": {A: {"f:v": {}}}}),
        ({"f:l": {A: {"f:v": {}}}}, {"l": [{"name": "a", "v": 1}]}, [], {}),
        ({"f:l": {TCP: {".": {}}}}, {"l": [{"port": 80}]}, [], {}),
        ({"f:l": {'v:"a"': {}, 'v:"b"': {}}}, {"l": ["b"]}, [], {"f:l": {'v:"a"': {}}}),
    ],
)
def test_an_owned_field_no_longer_declared_goes_unless_another_manager_owns_it(
    owned: Fields, desired: Any, others: list[Fields], goes: Fields
) -> None:
    assert going(owned, desired, others) == goes


@pytest.mark.parametrize(
    ("value", "gone", "left"),
    [
        ({"x": 1, "y": 2}, {"f:x": {}}, {"y": 2}),
        ({"x": {"y": 1, "z": 2}}, {"f:x": {"f:y": {}}}, {"x": {"z": 2}}),
        ({"x": {"y": 1}}, {"f:x": {"f:y": {}}}, {"x": None}),
        ({"x": {}}, {"f:x": {"f:y": {}}}, {"x": {}}),
        ({"x": []}, {"f:x": {}}, {"x": []}),
        ({"l": ["a", "b"]}, {"f:l": {'v:"a"': {}}}, {"l": ["b"]}),
        ({"l": ["a"]}, {"f:l": {'v:"a"': {}}}, {"l": None}),
        ({"l": [{"name": "a", "v": 1}, {"name": "b"}]}, {"f:l": {A: {"f:v": {}}, B: {}}}, {"l": [{"name": "a"}]}),
        ("text", {"f:x": {}}, "text"),
    ],
)
def test_removing_a_field_set_leaves_the_original_value(value: Any, gone: Fields, left: Any) -> None:
    before = copy.deepcopy(value)
    assert without(value, gone) == left
    assert value == before


@pytest.mark.parametrize(
    ("value", "desired", "fields", "becomes"),
    [
        ({"x": 1}, {"y": 2}, None, {"x": 1, "y": 2}),
        ({"x": {"a": 1}}, {"x": {"b": 2}}, {"f:x": {"f:a": {}}}, {"x": {"a": 1, "b": 2}}),
        ({"x": {"a": 1}}, {"x": {"b": 2}}, {"f:x": {}}, {"x": {"b": 2}}),
        (["a", "b"], ["c"], None, ["c"]),
        (["a", "b"], ["c", "a"], {'v:"a"': {}, 'v:"b"': {}}, ["c", "a", "b"]),
        ([{"name": "a", "v": 1}], [{"name": "b"}], {A: {"f:v": {}}}, [{"name": "a", "v": 1}, {"name": "b"}]),
        ([{"name": "a", "v": 1}], [{"name": "a", "w": 2}], {A: {"f:v": {}}}, [{"name": "a", "v": 1, "w": 2}]),
        ([{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}], {A: {}, B: {}}, [{"name": "b"}, {"name": "a"}]),
        ([{"port": 80, "protocol": "TCP"}], [{"port": 80, "name": "x"}], {TCP: {".": {}}}, [{"port": 80, "name": "x", "protocol": "TCP"}]),
    ],
)
def test_lists_are_merged_as_the_set_says(value: Any, desired: Any, fields: Fields | None, becomes: Any) -> None:
    assert applied_over(value, desired, fields) == becomes


@pytest.mark.parametrize(
    ("fields", "path", "piece", "rest"),
    [
        ({"f:x": {"f:y": {}, "f:z": {}}}, ("x", "y"), {"f:x": {"f:y": {}}}, {"f:x": {"f:z": {}}}),
        ({"f:x": {"f:y": {}}, "f:o": {}}, ("x", "y"), {"f:x": {"f:y": {}}}, {"f:o": {}}),
        ({"f:x": {"f:z": {}}}, ("x", "y"), {}, {"f:x": {"f:z": {}}}),
        ({"f:x": {}, "f:o": {}}, ("x", "y"), {"f:x": {}}, {"f:o": {}}),
        ({"f:o": {}}, ("x", "y"), {}, {"f:o": {}}),
        ({"f:o": {}}, (), {"f:o": {}}, {}),
        ({}, ("x",), {}, {}),
        ({"f:l": {A: {"f:v": {}}, B: {}}}, ("l", 0, "v"), {"f:l": {A: {"f:v": {}}}}, {"f:l": {B: {}}}),
    ],
)
def test_a_set_is_parted_at_a_path_of_the_value(fields: Fields, path: tuple[Any, ...], piece: Fields, rest: Fields) -> None:
    assert parted(fields, {"x": {"y": 1}, "l": [{"name": "a", "v": 1}, {"name": "b"}]}, path) == (piece, rest)


def test_only_what_a_value_has_exists() -> None:
    fields: Fields = {".": {}, "f:x": {"f:y": {}, "f:old": {}}, "f:old": {}, "f:gone": {"f:y": {}}, "f:only": {"f:old": {}}}
    assert existing(fields, {"x": {"y": 1}, "only": {}}) == {".": {}, "f:x": {"f:y": {}}}


def test_each_leaf_has_its_path_and_its_own_set() -> None:
    fields: Fields = {".": {}, "f:x": {"f:y": {}}, "f:l": {A: {".": {}, "f:v": {}}, 'v:"m"': {}}, "f:whole": {".": {}}}
    assert list(paths(fields)) == [
        (("x", "y"), {"f:x": {"f:y": {}}}),
        (("l", (("name", "a"),), "v"), {"f:l": {A: {"f:v": {}}}}),
        (("l", ((MEMBER, "m"),)), {"f:l": {'v:"m"': {}}}),
        (("whole",), {"f:whole": {".": {}}}),
    ]


def test_a_path_leads_to_its_value_or_to_nothing() -> None:
    value = {"l": [{"name": "a", "v": 1}]}
    assert at_path(value, ("l", (("name", "a"),), "v")) == 1
    assert at_path(value, ("l", (("name", "z"),), "v")) is None


def test_an_element_is_named_by_its_keys_or_by_itself() -> None:
    assert names(A, {"name": "a"})
    assert names('v:"a"', "a")
    assert not names("f:a", {"name": "a"})
    assert not names("v:1", True)


V1, V2 = "example.com/v1", "example.com/v2"


def offer(spec: dict[str, Any], *entries: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    meta = {"name": "tea", "namespace": "shop", "uid": "u", "resourceVersion": "7", **metadata}
    return {"apiVersion": V2, "kind": "Offer", "metadata": {**meta, "managedFields": list(entries)}, "spec": spec}


def ours(*fields: str) -> dict[str, Any]:
    return entry({"f:spec": {f"f:{name}": {} for name in fields}}, api=V1)


def test_every_entry_of_the_kind_moves_and_no_other() -> None:
    theirs, other = entry({"f:status": {}}, "vendor", "Update", api=V1), entry({"f:metadata": {}}, "other", api="v1")
    live = offer({"price": 1}, ours("price"), theirs, other)
    assert recorded_in(live) == V1
    assert [each["apiVersion"] for each in migrated(live, V2)] == [V2, V2, "v1"]
    assert recorded_in(offer({})) == ""
