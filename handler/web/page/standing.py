"""How a target stands, in one word with a colour: of a row of `/api/targets`. Pure.

The first that holds counts, so that a filter and a sort find what needs a person before what only moves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from handler.model.health import HealthState
from handler.state.run_history import PRUNING, ROLLING

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Badge:
    """`key`: in addresses and classes; `word`: as people read it; `tone`: good, bad, warn, moving, quiet; `sign`: its shape."""

    key: str
    word: str
    tone: str
    sign: str


UNREAD = Badge("unread", "unread", "bad", "?")
FAILED = Badge("failed", "failed", "bad", "✕")
DEGRADED = Badge("degraded", "degraded", "bad", "!")
HELD = Badge("held", "held", "warn", "◆")
DRIFTED = Badge("drifted", "drifted", "warn", "≠")
SUSPENDED = Badge("suspended", "suspended", "quiet", "‖")
MOVING = Badge("moving", "rolling out", "moving", "➤")
WAITING = Badge("waiting", "waiting", "moving", "…")
NEW = Badge("new", "never ran", "quiet", "○")
UNKNOWN = Badge("unknown", "unknown", "quiet", "?")
HEALTHY = Badge("healthy", "healthy", "good", "✓")
STANDINGS = (UNREAD, FAILED, DEGRADED, HELD, DRIFTED, SUSPENDED, MOVING, WAITING, NEW, UNKNOWN, HEALTHY)
"""All of them, the most urgent first."""


def _instances(row: Row) -> int:
    """Return how many instances a template has; it stands as they do, where nothing is wrong with itself."""
    return int((row.get("instances") or {}).get("count", 0))


_RULES: tuple[tuple[Badge, Callable[[Row], object]], ...] = (
    (UNREAD, lambda row: row["trouble"]),
    (SUSPENDED, lambda row: row["suspended"] or row["phase"] == "suspended"),
    (NEW, lambda row: not (row["recorded"] or _instances(row))),
    (FAILED, lambda row: row["phase"] == "failed"),
    (HELD, lambda row: row["held"]),
    (MOVING, lambda row: row["phase"] in (ROLLING, PRUNING) or (row["phase"] == "waiting" and not row["awaits"]) or row["attempt"]),
    (DEGRADED, lambda row: row["health"] == HealthState.DEGRADED or (_instances(row) and row["instances"]["unwell"])),
    (DRIFTED, lambda row: row["drifted"]),
    (WAITING, lambda row: row["phase"] == "waiting"),
    (MOVING, lambda row: row["health"] == HealthState.PROGRESSING),
    (HEALTHY, lambda row: row["health"] == HealthState.HEALTHY or _instances(row)),
    (UNKNOWN, lambda _row: True),
)


def standing(row: Row) -> Badge:
    """Return how the target of a row stands."""
    return next(found for found, holds in _RULES if holds(row))


def urgency(found: Badge) -> int:
    """Return the place of a standing in a list, the most urgent first."""
    return STANDINGS.index(found)
