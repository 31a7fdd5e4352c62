"""The states of a gap, of orphans and of an inventory, and how each is shown: by a sign, a word and a colour. Pure tables.

Law: page, command line and documentation show a state alike; JSON has its value. The web process reads this and no more of a look:
nothing here imports what asks a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from handler.inspect.inventory_tree import MISSING
from handler.model.health import Status
from handler.plan.gap import FieldState


class ObjectState(StrEnum):
    """How an object stands; in the order in which they are listed."""

    DIFFERS = "differs"
    MISSING = "missing"
    UNDECLARED = "undeclared"
    ITSELF = "itself"
    EQUAL = "equal"


class Fate(StrEnum):
    """What becomes of a live object, in the order in which they are listed."""

    DELETED = "deleted"
    RECREATED = "recreated"
    EXPIRES = "expires"
    KEPT = "kept"
    LEFT = "left"
    UNDECLARED = "undeclared"


@dataclass(frozen=True, slots=True)
class Sign:
    """How one state is shown. `tone`: good, bad, warn, moving, quiet."""

    sign: str
    word: str
    tone: str


_MINUS = "\N{MINUS SIGN}"
OBJECTS: Mapping[ObjectState, Sign] = {
    ObjectState.DIFFERS: Sign("≠", "differs", "bad"),
    ObjectState.MISSING: Sign("+", "missing", "bad"),
    ObjectState.UNDECLARED: Sign(_MINUS, "undeclared", "warn"),
    ObjectState.ITSELF: Sign("~", "by itself", "quiet"),
    ObjectState.EQUAL: Sign("=", "equal", "good"),
}
FIELDS: Mapping[FieldState, Sign] = {state: OBJECTS[ObjectState(state)] for state in FieldState}
FATES: Mapping[Fate, Sign] = {
    Fate.DELETED: Sign(_MINUS, "deleted", "bad"),
    Fate.RECREATED: Sign("!", "recreated", "bad"),
    Fate.EXPIRES: Sign("…", "expires", "warn"),
    Fate.KEPT: Sign(".", "kept", "quiet"),
    Fate.LEFT: Sign(".", "left", "quiet"),
    Fate.UNDECLARED: Sign("?", "undeclared", "quiet"),
}
INVENTORY: Mapping[str, Sign] = {
    Status.FAILED: Sign("✕", "failed", "bad"),
    MISSING: Sign("+", "missing", "bad"),
    Status.UNKNOWN: Sign("?", "unknown", "quiet"),
    Status.TERMINATING: Sign("…", "terminating", "warn"),
    Status.IN_PROGRESS: Sign("➤", "in progress", "moving"),
    Status.CURRENT: Sign("✓", "current", "good"),
}
