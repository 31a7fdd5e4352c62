"""One target as its page shows it: how it stands, its rollout as groups and steps, what stands in the way. Pure.

It is made of the record (`/api/targets/<target>`) and of the live picture of a run, where the worker beside has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handler.health.kinds.pods import WITH_PODS
from handler.model.health import HealthState
from handler.state.run_history import PRUNING, ROLLING

Json = Mapping[str, Any]


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
NEW = Badge("new", "no record", "quiet", "○")
UNKNOWN = Badge("unknown", "unknown", "quiet", "?")
HEALTHY = Badge("healthy", "healthy", "good", "✓")
STANDINGS = (UNREAD, FAILED, DEGRADED, HELD, DRIFTED, SUSPENDED, MOVING, WAITING, NEW, UNKNOWN, HEALTHY)
"""All of them, the most urgent first."""


def _instances(row: Json) -> int:
    """Return how many instances a template has; it stands as they do, where nothing is wrong with itself."""
    return int((row.get("instances") or {}).get("count", 0))


_RULES: tuple[tuple[Badge, Callable[[Json], object]], ...] = (
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


def standing(row: Json) -> Badge:
    """Return how the target of a row of `/api/targets` stands: the first rule that holds, what needs a person before what only moves."""
    return next(found for found, holds in _RULES if holds(row))


def urgency(found: Badge) -> int:
    """Return the place of a standing in a list, the most urgent first."""
    return STANDINGS.index(found)


_STEP_TONES = {"done": ("done", "good", "✓"), "failed": ("failed", "bad", "✕"), "skipped": ("skipped", "quiet", "-")}
_LOGGED = frozenset(each.kind for each in WITH_PODS)
_UNDER_WAY, _PENDING = ("under way", "moving", "➤"), ("pending", "quiet", "○")


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of a rollout. `facts`: as recorded; `word`, `tone`, `sign`: how it stands."""

    facts: Json
    word: str
    tone: str
    sign: str


@dataclass(frozen=True, slots=True)
class GroupView:
    """Steps that stand together. `done`: how many have ended; `tone`: of the worst or liveliest of them."""

    name: str
    steps: tuple[StepView, ...]
    done: int
    tone: str


@dataclass(frozen=True, slots=True)
class TargetView:
    """What the page of a target shows. `facts`: the API's answer; `state`: its record, empty: there is none.

    `run`: the live picture of a run under way, else None; `groups`: of the newest rollout; `unhealthy`: of each object why,
    and whether it has logs.
    """

    facts: Json
    state: Json
    standing: Badge
    run: Json | None
    groups: tuple[GroupView, ...]
    unhealthy: tuple[tuple[str, str, bool], ...]

    @property
    def rolls(self) -> bool:
        """Whether the groups are of the rollout that goes on now."""
        return bool(self.groups) and not self.state["rollout"]["outcome"]


def target_view(facts: Json, live: Json | None) -> TargetView:
    """Return what the page of a target shows. `live`: the picture of its run, None: none is known here."""
    state: Json = facts["state"] or {}
    run = live if live and not live["ended"] and state.get("attempt") else None  # the record knows whether it has come to its end
    return TargetView(facts, state, standing(_row(facts, state)), run, _groups(state), tuple(_unhealthy(state)))


def _row(facts: Json, state: Json) -> Json:
    return {
        "trouble": facts["trouble"],
        "recorded": facts["recorded"],
        "instances": facts.get("instances"),
        "suspended": facts["suspended"],
        "phase": state["status"]["phase"] if state else "",
        "held": bool(state.get("held")),
        "attempt": state.get("attempt"),
        "awaits": state.get("awaits"),
        "health": state["health"]["state"] if state else "",
        "drifted": len({each["identity"] for each in state["drift"]["items"]}) if state else 0,
    }


def _groups(state: Json) -> tuple[GroupView, ...]:
    steps = state["rollout"]["steps"]["items"] if state.get("rollout") else ()
    groups: dict[str, list[StepView]] = {}
    for step in steps:
        word, tone, sign = _STEP_TONES.get(step["outcome"]) or (_UNDER_WAY if step["started"] else _PENDING)
        groups.setdefault(step["group"], []).append(StepView(step, word, tone, sign))
    return tuple(_group(name, found) for name, found in groups.items())


def _group(name: str, steps: Sequence[StepView]) -> GroupView:
    tones = {step.tone for step in steps}
    tone = next((tone for tone in ("bad", "moving", "quiet") if tone in tones), "good")
    return GroupView(name, tuple(steps), sum(bool(step.facts["outcome"]) for step in steps), tone)


def _unhealthy(state: Json) -> Iterator[tuple[str, str, bool]]:
    """Yield what the run waits for or has failed at, then what does worst by now; each object once."""
    seen = set[str]()
    for line in (*state["status"]["unhealthy"], *state["health"]["worst"]) if state else ():
        subject, _, why = line.partition(": ")
        if subject not in seen:
            seen.add(subject)
            yield subject, why, subject.partition("/")[0] in _LOGGED
