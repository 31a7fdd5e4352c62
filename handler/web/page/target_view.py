"""One target as its page shows it: how it stands, its rollout as groups and steps, what stands in the way. Pure.

It is made of the record (`/api/targets/<target>`) and of the live picture of a run, where the worker beside has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handler.health.kinds.pods import WITH_PODS
from handler.web.page.standing import Badge, standing

Json = Mapping[str, Any]
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
