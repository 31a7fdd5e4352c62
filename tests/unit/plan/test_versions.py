"""Our fields of an object that are recorded in another API version than git writes."""

from __future__ import annotations

from typing import Any

from handler.plan.versions import foreseen, migrated, recorded_in
from tests.unit.plan.samples import entry

V1, V2 = "example.com/v1", "example.com/v2"


def offer(spec: dict[str, Any], *entries: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    meta = {"name": "tea", "namespace": "shop", "uid": "u", "resourceVersion": "7", **metadata}
    return {"apiVersion": V2, "kind": "Offer", "metadata": {**meta, "managedFields": list(entries)}, "spec": spec}


def ours(*fields: str) -> dict[str, Any]:
    return entry({"f:spec": {f"f:{name}": {} for name in fields}}, api=V1)


def declared(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": V2, "kind": "Offer", "metadata": {"name": "tea", "namespace": "shop"}, "spec": spec}


def test_every_entry_of_the_kind_moves_and_no_other() -> None:
    theirs, other = entry({"f:status": {}}, "vendor", "Update", api=V1), entry({"f:metadata": {}}, "other", api="v1")
    live = offer({"price": 1}, ours("price"), theirs, other)
    assert recorded_in(live) == V1
    assert [each["apiVersion"] for each in migrated(live, V2)] == [V2, V2, "v1"]
    assert recorded_in(offer({})) == ""


def test_what_we_own_and_git_drops_goes_and_what_another_owns_stays() -> None:
    theirs = entry({"f:spec": {"f:note": {}, "f:extra": {}}}, "vendor", api=V1)
    live = offer({"price": 1, "note": "hot", "old": 1, "extra": 2, "tags": ["a"]}, ours("price", "note", "old", "tags"), theirs)
    found = foreseen(live, declared(price=2, tags=["b"]))
    assert found["spec"] == {"price": 2, "note": "hot", "extra": 2, "tags": ["b"]}


def test_of_a_mapping_only_our_part_goes() -> None:
    fields = entry({"f:spec": {"f:labels": {"f:a": {}, "f:b": {}}, "f:gone": {"f:x": {}}, "f:half": {"f:x": {}}}}, api=V1)
    live = offer({"labels": {"a": "1", "b": "1", "c": "theirs"}, "gone": {"x": 1}, "half": {"x": 1, "y": 2}}, fields)
    assert foreseen(live, declared(labels={"a": "2"}))["spec"] == {"labels": {"a": "2", "c": "theirs"}, "half": {"y": 2}}


def test_what_is_no_mapping_on_either_side_is_taken_whole() -> None:
    live = offer({"price": {"amount": 1}, "tags": "a"}, ours("price", "tags"))
    assert foreseen(live, declared(price=1, tags={"b": "c"}))["spec"] == {"price": 1, "tags": {"b": "c"}}
