"""Our fields of an object that are recorded in another API version than git writes."""

from __future__ import annotations

from typing import Any

from handler.plan.managed_fields import migrated, recorded_in
from tests.unit.plan.samples import entry

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
