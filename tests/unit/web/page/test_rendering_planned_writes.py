"""A confirmation shows each field that changes, and says how many it leaves out."""

from __future__ import annotations

from typing import Any

from handler.inspect.plan_questions import cut
from handler.plan.gap import GOES, STAYS
from handler.web.page.rendering import planned_writes


def row(path: str, state: str, why: str = "") -> dict[str, str]:
    return {"path": path, "state": state, "declared": "1", "live": "2", "why": why}


def planned(action: str, *fields: dict[str, str], omitted: int = 0, **counts: int) -> dict[str, Any]:
    known = {"object": "ConfigMap/shop/a", "state": "differs", "action": action, "deletes": False}
    return known | {"fields": list(fields), "counts": counts, "omitted": omitted}


def test_fields_that_change_are_shown_and_what_stays_isnt() -> None:
    fields = (row("data.a", "differs"), row("data.b", "undeclared", GOES), row("data.c", "undeclared", STAYS), row("data.d", "itself"))
    (found,) = planned_writes({"objects": [planned("update", *fields, differs=1, undeclared=2, itself=1), planned("unchanged")]})
    assert ([each["path"] for each in found.fields], found.more) == (["data.a", "data.b"], 0)


def test_what_has_no_room_is_said() -> None:
    each = planned("update", *(row(f"data.{number}", "differs") for number in range(200)), omitted=120, differs=300, equal=20)
    (found,) = planned_writes({"objects": [each]})
    assert (len(found.fields), found.more) == (200, 100)
    plan = cut({"objects": [each], "omitted": 0}, most=1000)
    (found,) = planned_writes(plan)
    assert (found.fields, found.more) == ((), 300)


def test_what_is_created_has_no_fields() -> None:
    (found,) = planned_writes({"objects": [planned("create")]})
    assert (found.action, found.fields, found.more) == ("create", (), 0)
