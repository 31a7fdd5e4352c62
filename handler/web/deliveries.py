"""The last deliveries of this process, for people who ask why nothing ran. What matched is in the record of its target, too.

Law: a token sees of a delivery only the targets it may read; one that concerns no target shows only to who may read all. Refused
deliveries have a ring of their own, so that whoever sends rubbish pushes out nothing else.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handler.feedback.metrics import DoorMetrics
from handler.model.errors import AnnealError
from handler.model.event import Decision, Event

REMEMBERED = 500
"""Deliveries in each of the two rings."""
_TEXT = 300


@dataclass(frozen=True, slots=True)
class Heard:
    """One delivery. `number` grows with each; `targets`: what was decided, by target."""

    number: int
    facts: Mapping[str, Any]
    targets: tuple[Mapping[str, Any], ...] = ()


class Deliveries:
    """Thread-safe. `since`: when this process began to listen, RFC 3339."""

    def __init__(self, metrics: DoorMetrics) -> None:
        self.since = _now()
        self._metrics = metrics
        self._decided: deque[Heard] = deque(maxlen=REMEMBERED)
        self._refused: deque[Heard] = deque(maxlen=REMEMBERED)
        self._number = 0
        self._lock = threading.Lock()

    def decided(self, event: Event, decisions: Sequence[Decision], runs: Mapping[str, str]) -> None:
        """Note a verified delivery. `runs`: the id of the run by target."""
        outcome = "matched" if runs else "ignored"
        self._metrics.delivery(event.provider, outcome)
        facts = {"provider": event.provider, "delivery": event.delivery[:_TEXT], "kind": event.kind, "actor": event.actor[:_TEXT]}
        rows = tuple(_row(decision, runs) for decision in decisions if decision.target)
        reasons = [decision.reason for decision in decisions if not decision.target]
        self._add(self._decided, facts | {"outcome": outcome, "code": "", "reason": "; ".join(reasons)}, rows)

    def refused(self, provider: str, error: AnnealError) -> None:
        """Note a delivery that wasn't believed or understood; nothing that its sender wrote is kept."""
        self._metrics.delivery(provider, "refused", error.code)
        facts = {"provider": provider, "delivery": "", "kind": "", "actor": "", "outcome": "refused", "code": error.code}
        self._add(self._refused, facts | {"reason": str(error)}, ())

    def shown(self, readable: Callable[[str], bool], *, everything: bool, limit: int) -> list[dict[str, Any]]:
        """Return what a reader may see, newest first. `everything`: also what concerns no target."""
        with self._lock:
            known = sorted((*self._decided, *self._refused), key=lambda heard: -heard.number)
        found = (_visible(heard, readable, everything) for heard in known)
        return [one for one in found if one is not None][:limit]

    def _add(self, ring: deque[Heard], facts: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
        with self._lock:
            self._number += 1
            ring.append(Heard(self._number, {"received": _now(), **facts}, tuple(rows)))


def _visible(heard: Heard, readable: Callable[[str], bool], everything: bool) -> dict[str, Any] | None:
    rows = [dict(row) for row in heard.targets if readable(str(row["target"]))]
    if not rows and (heard.targets or not everything):
        return None
    return {**heard.facts, "targets": rows}


def _row(decision: Decision, runs: Mapping[str, str]) -> dict[str, Any]:
    told = {"target": decision.target, "matched": decision.matched, "reason": decision.reason}
    return told | {"ref": decision.change.ref, "commit": decision.change.after, "run": runs.get(decision.target)}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
