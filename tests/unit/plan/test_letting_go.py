"""What a retired target writes of an object that stays."""

from __future__ import annotations

from typing import Any

from handler.model.names import FIELD_MANAGER, IDENTITY, PART_OF, identity_of
from handler.plan.letting_go import let_go, patch
from tests.unit.plan.samples import OURS, SET, document, live, member

OTHER = {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}}
MINE = {"manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:a": {}}}}


def body(*entries: dict[str, Any]) -> dict[str, Any]:
    found = live(member(document()))
    found["metadata"]["managedFields"] = list(entries)
    return found


def entries(found: dict[str, Any]) -> Any:
    operations = patch(found, identity_of(found), OURS)
    assert operations
    return operations[0]["value"]


def test_the_marks_go_and_the_version_is_guarded() -> None:
    found = body(MINE)
    operations = patch(found, identity_of(found), OURS)
    assert operations
    assert operations[1:] == [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": found["metadata"]["resourceVersion"]},
        {"op": "remove", "path": f"/metadata/labels/{PART_OF.replace('/', '~1')}"},
        {"op": "remove", "path": f"/metadata/annotations/{IDENTITY.replace('/', '~1')}"},
    ]


def test_our_entries_go_where_another_stays() -> None:
    assert entries(body(MINE, OTHER, {**MINE, "operation": "Update"})) == [OTHER]


def test_the_only_entry_stays_and_owns_nothing_that_an_apply_has() -> None:
    (left,) = entries(body(MINE, {**MINE, "operation": "Update"}))
    assert (left["manager"], left["operation"], left["fieldsV1"]) == (FIELD_MANAGER, "Update", {"f:metadata": {"f:generateName": {}}})


def test_what_is_no_longer_ours_is_left_alone() -> None:
    found = body(MINE)
    found["metadata"]["labels"][PART_OF] = "applyset-another-v1"
    assert patch(found, identity_of(found), OURS) is None


def test_the_plan_shows_both_marks_and_why_it_stays() -> None:
    found = body(MINE)
    change = let_go(identity_of(found), found, "protected by x: y")
    assert (change.writes, change.removes, change.reason) == (True, False, "let go: protected by x: y")
    assert [(each.path, each.live, each.declared) for each in change.fields] == [
        (f"metadata.labels.{PART_OF}", SET, ""),
        (f"metadata.annotations.{IDENTITY}", "shop:/ConfigMap:shop/web", ""),
    ]
