"""What a plan would write, as a confirmation shows it: of each object the fields that change. Pure.

Law: what is left out is said: objects beyond the first, fields that an answer has no room for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handler.model.plan import Action
from handler.plan.gap import GOES, FieldState

Json = Mapping[str, Any]
WRITES = (Action.CREATE, Action.UPDATE, Action.RECREATE)
_LOUD = (FieldState.DIFFERS, FieldState.UNDECLARED)


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One object. `state`: of the gap; `fields`: those that change; `more`: how many aren't listed that may."""

    object: str
    state: str
    action: str
    fields: tuple[Json, ...]
    more: int


def planned_writes(plan: Json) -> tuple[PlannedWrite, ...]:
    """Return what a gap's next run would write."""
    return tuple(_write(each) for each in plan["objects"] if each["action"] in WRITES)


def _write(each: Json) -> PlannedWrite:
    changing: Sequence[Json] = [field for field in each["fields"] if field["state"] == FieldState.DIFFERS or field["why"] == GOES]
    listed = sum(field["state"] in _LOUD for field in each["fields"])
    more = sum(each["counts"].get(state, 0) for state in _LOUD) - listed
    return PlannedWrite(each["object"], each["state"], each["action"], tuple(changing), more)
