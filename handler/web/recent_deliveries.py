"""The last deliveries of this process, for `/api/deliveries`. Matched ones are in the record of their target, too.

Law: a token sees only the targets of a delivery that it may read, and their outcomes, and the plan of a pull request with the target that
it is named by; a delivery without any target only with the right to read all. Refused deliveries have a ring of their own, so that garbage
pushes out nothing else; both are bounded.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

from handler.model.errors import AnnealError
from handler.model.event import Decision, Event
from handler.model.pull_request import lead_target

REMEMBERED = 500  # deliveries in each of the two rings
ROWS = 20_000
"""Decisions in each of them: of a thousand targets that follow one repository only the last twenty deliveries are remembered."""
_TEXT, _REASON = 300, 600


class DeliveryRow(NamedTuple):
    """What was decided for one target, or for a pull request (`pull_request_name`); a tuple, because there may be very many."""

    target: str
    matched: bool
    reason: str
    ref: str
    commit: str
    run: str | None


@dataclass(frozen=True, slots=True)
class RecentDelivery:
    """One delivery. `number` grows with each."""

    number: int
    facts: Mapping[str, Any]
    rows: tuple[DeliveryRow, ...] = ()


class RecentDeliveries:
    """Thread-safe. `since`: when this process began to listen, RFC 3339."""

    def __init__(self) -> None:
        self.since = _now()
        self._decided: deque[RecentDelivery] = deque(maxlen=REMEMBERED)
        self._refused: deque[RecentDelivery] = deque(maxlen=REMEMBERED)
        self._number = 0
        self._lock = threading.Lock()

    def decided(self, event: Event, decisions: Sequence[Decision], runs: Mapping[str, str]) -> None:
        """Note a verified delivery. `runs`: the id of the run by target."""
        facts = {"provider": event.provider, "delivery": event.delivery[:_TEXT], "kind": event.kind, "actor": event.actor[:_TEXT]}
        texts: dict[str, str] = {}  # most targets of a delivery have the same reason: it is kept once
        rows = (_row(decision, runs, texts) for decision in decisions if decision.target)
        reasons = [decision.reason for decision in decisions if not decision.target]
        self._add(self._decided, facts | {"outcome": outcome_of(decisions), "code": "", "reason": "; ".join(reasons)}, rows)

    def refused(self, provider: str, error: AnnealError) -> None:
        """Note a delivery that wasn't believed or understood; nothing that its sender wrote is kept."""
        facts = {"provider": provider, "delivery": "", "kind": "", "actor": "", "outcome": "refused", "code": error.code}
        self._add(self._refused, facts | {"reason": str(error)}, ())

    def shown(self, readable: Callable[[str], bool], *, everything: bool, limit: int) -> list[dict[str, Any]]:
        """Return what a reader may see, newest first. `everything`: also what concerns no target."""
        with self._lock:
            known = sorted((*self._decided, *self._refused), key=lambda heard: -heard.number)
        found = (_visible(heard, readable, everything) for heard in known)
        return list(islice((one for one in found if one is not None), limit))

    def _add(self, ring: deque[RecentDelivery], facts: Mapping[str, Any], rows: Iterable[DeliveryRow]) -> None:
        kept = tuple(rows)
        with self._lock:
            self._number += 1
            ring.append(RecentDelivery(self._number, {"received": _now(), **facts}, kept))
            while len(ring) > 1 and sum(len(heard.rows) for heard in ring) > ROWS:
                ring.popleft()


def _visible(heard: RecentDelivery, readable: Callable[[str], bool], everything: bool) -> dict[str, Any] | None:
    rows = [row for row in heard.rows if readable(lead_target(row.target))]
    if not rows and (heard.rows or not everything):
        return None
    facts = {**heard.facts, "outcome": outcome_of(rows)} if rows else heard.facts
    return {**facts, "targets": [row._asdict() for row in rows]}


def outcome_of(decided: Sequence[Decision | DeliveryRow]) -> Literal["matched", "ignored"]:
    """Return the outcome of a verified delivery."""
    return "matched" if any(each.matched for each in decided) else "ignored"


def _row(decision: Decision, runs: Mapping[str, str], texts: dict[str, str]) -> DeliveryRow:
    reason = decision.reason if len(decision.reason) <= _REASON else f"{decision.reason[:_REASON]} …"
    change = decision.change
    return DeliveryRow(
        decision.target, decision.matched, texts.setdefault(reason, reason), change.ref, change.after, runs.get(decision.target)
    )


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
