"""The questions that a plan answers: the gap of a target, and its orphans."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from handler.app.build import Handler
from handler.inspect.gap import Gap, gap_of
from handler.inspect.look import Ask, look
from handler.inspect.orphans import Orphans, orphans_of
from handler.inspect.shared_looks import SharedLooks
from handler.model.to_json import ANSWER, plain

AT_ONCE = 2  # plans that are made at once for viewers
FRESH = 5.0  # seconds for which an answer serves the same question again
PATIENCE = 36.0
"""Seconds that a question has, its turn included; the web process waits a little longer (`outbox.PATIENCE`)."""


@dataclass(frozen=True, slots=True)
class _Answer:
    gap: Gap
    orphans: Orphans


@dataclass(frozen=True, slots=True)
class PlanQuestions:
    """A method each. `handler`: makes the plans, by one thread a target; `looks`: shared by all viewers."""

    handler: Handler
    clock: Callable[[], float] = time.time
    looks: SharedLooks = field(default_factory=lambda: SharedLooks(AT_ONCE))
    patience: float = PATIENCE

    def gap(self, ask: Ask, *, anew: bool = False) -> Gap:
        """Return the gap of a target; what goes wrong with that is in it. `anew`: as it is from now on, not as a moment ago.

        Raises ClusterUnavailable: too slow, or too many look.
        """
        known: _Answer | None = self.looks.known(replace(ask, object="")) if ask.object and not anew else None
        whole = known.gap.of(ask.object) if known else None
        if whole and not any(each.omitted for each in whole.objects):
            return whole
        found = self._answer(ask, anew=anew).gap
        return found.of(ask.object) if ask.object else found

    def orphans(self, name: str) -> Orphans:
        """Return what the next run deletes of a target, and what it keeps. Raises as `gap`."""
        return self._answer(Ask(name, beside=True)).orphans

    def _answer(self, ask: Ask, *, anew: bool = False) -> _Answer:
        return self.looks.ask(ask, lambda: self._anew(ask), seconds=self.patience, fresh=FRESH, alone=ask.target, anew=anew)

    def _anew(self, ask: Ask) -> _Answer:
        found = look(self.handler, ask, self.clock())
        return _Answer(gap_of(found), orphans_of(found))


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
