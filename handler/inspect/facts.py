"""What an inspection found, as JSON: the one form that page, CLI and API have; and cut, so that an answer has an end. Pure."""

from __future__ import annotations

import json
from typing import Any

from handler.inspect.gap import Gap
from handler.inspect.orphans import Orphans
from handler.model.to_json import ANSWER, plain

Json = dict[str, Any]


def facts(found: Gap | Orphans) -> Json:
    """Return a gap or orphans as JSON: what was seen at the top, beside the lists."""
    told: Json = plain(found)
    seen: Json = told.pop("seen")
    if isinstance(found, Gap):
        told["due"] = [{"group": due.group, "step": due.step, "object": str(due.identity), "action": due.action} for due in found.due]
    return seen | told


def cut(told: Json, most: int = ANSWER) -> Json:
    """Return it with as many objects as fit: those that go, then the first; fields are left out before objects; `omitted`: how many are."""
    name, left = "objects" if "objects" in told else "orphans", most
    kept: dict[int, Json] = {}
    for place, each in sorted(enumerate(told[name]), key=lambda one: not one[1].get("deletes")):
        shown = each
        size = len(json.dumps(shown))
        if size > left and shown.get("fields"):
            shown = each | {"fields": [], "omitted": each["omitted"] + len(each["fields"])}
            size = len(json.dumps(shown))
        if size > left:
            break
        left -= size
        kept[place] = shown
    return told | {name: [kept[place] for place in sorted(kept)], "omitted": told["omitted"] + len(told[name]) - len(kept)}
