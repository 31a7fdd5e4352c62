"""What stands in the status of an instance's object: conditions of the rollout as a whole, of each group and of each step. Pure.

    Ready       True: the object's declaration is applied, and what it deploys is healthy (`kubectl wait --for=condition=Ready`)
    Stalled     True: a person must act (kstatus); else it isn't there
    Rollout     how the newest rollout goes
    Group-…     each group, Step-… each step of a Rollout

Each is a condition as Kubernetes has them (`metav1`) that carries Locutus' `name` and `currentStatus`, too. It follows from the record
alone, so that whatever was lost between is healed by the next look.

Law: the conditions of others stay as they are. A time moves with its condition's status, and `observedGeneration` never goes back.
Sources: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md; Locutus' `status.conditions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from handler.engine.planner.due import DONE, FAILED, SKIPPED
from handler.model.health import HealthState
from handler.model.result import Outcome
from handler.state.record import State, StepRecord
from handler.state.run_history import PRUNING, ROLLING

Live = dict[str, Any]
CurrentStatus = Literal["Not Started", "In Progress", "Finished", "Failed"]
READY, STALLED, ROLLOUT = "Ready", "Stalled", "Rollout"
_OURS = re.compile(r"Ready|Stalled|Rollout|Group-.*|Step-.*", re.DOTALL)
MOST = 100  # conditions of groups and steps
_LONGEST, _NAME = 1000, 100  # characters of a message, and of a group's or step's part of a type
_STATUS: dict[CurrentStatus, str] = {"Not Started": "False", "In Progress": "Unknown", "Finished": "True", "Failed": "False"}
_REASONS: dict[CurrentStatus, str] = {
    "Not Started": "NotStarted",
    "In Progress": "InProgress",
    "Finished": "Finished",
    "Failed": "Failed",
}


@dataclass(frozen=True, slots=True)
class StatusCondition:
    """One condition. `name`, `current`: Locutus' fields."""

    type: str
    status: str
    reason: str
    message: str
    name: str
    current: CurrentStatus

    def plain(self, before: Live | None, generation: int, now: str) -> Live:
        """Return it as the object holds it. `before`: the one of its type that stands there; `generation`: 0: none is said."""
        same = before is not None and (before.get("status"), before.get("currentStatus")) == (self.status, self.current)
        since = str(before.get("lastTransitionTime") or now) if same and before else now
        found: Live = {"type": self.type, "status": self.status, "reason": self.reason, "message": self.message}
        found |= {"lastTransitionTime": since, "name": self.name, "currentStatus": self.current}
        return found | ({"observedGeneration": generation} if generation else {})


def status_of(live: Live, state: State, generation: int, suspended: str, now: str) -> Live:
    """Return what the status of an object should be, with what others have written there.

    `generation`: which of the object the record is of; 0: it isn't said. `suspended`: why its template is paused, empty: it isn't;
    `now`: RFC 3339.
    """
    status = live.get("status")
    found = dict(status) if isinstance(status, dict) else {}
    known = found.get("conditions")
    before = [each for each in known if isinstance(each, dict)] if isinstance(known, list) else []
    newest = max(generation, _count(found.get("observedGeneration"))) if generation else 0
    if newest:
        found["observedGeneration"] = newest
    found["conditions"] = _merged(before, conditions(state, suspended), generation, now)
    return found


def differs(live: Live, wanted: Live) -> bool:
    """Whether the status of an object isn't what it should be."""
    return (live.get("status") or {}) != wanted


def is_open(live: Live) -> bool:
    """Whether an object's status says that something goes on, or is of an older generation, or nothing yet: its writer may have ended."""
    status = live.get("status")
    known = status.get("conditions") if isinstance(status, dict) else None
    ready = next((each for each in known or () if isinstance(each, dict) and each.get("type") == READY), None)
    if ready is None or ready.get("status") == "Unknown":
        return True
    return 0 < _count(ready.get("observedGeneration")) < _count(live["metadata"].get("generation"))


def conditions(state: State, suspended: str = "") -> list[StatusCondition]:
    """Return the conditions that a record stands for."""
    ready = _ready(state, suspended)
    found = [ready]
    if ready.current == "Failed":
        found.append(replace(ready, type=STALLED, status="True"))
    if state.rollout is not None:
        steps = state.rollout.steps
        whole = "Failed" if state.rollout.outcome == FAILED else _current(steps) if not state.rollout.outcome else "Finished"
        found.append(_condition(ROLLOUT, "rollout", whole, _said(steps, whole)))
        found += list(_parts(steps))[:MOST]
    return found


def _ready(state: State, suspended: str) -> StatusCondition:
    status, phase = state.status, state.status.phase
    if suspended or state.suspend is not None:
        by = suspended or f"suspended by {state.suspend.by if state.suspend else ''}: `anneal resume {state.target}`"
        return StatusCondition(READY, "False", "Suspended", _cut(by), READY, "Not Started")
    if state.held is not None:
        way = f"`anneal approve {state.target} {state.held.id}`"
        return StatusCondition(READY, "False", "Held", _cut(f"{'; '.join(state.held.reasons)}; to allow it: {way}"), READY, "In Progress")
    if phase == Outcome.FAILED or (state.pin is not None and state.pin.automatic):
        reason = "RolledBack" if state.pin is not None and state.pin.automatic else _camel(status.code) or "Failed"
        return StatusCondition(READY, "False", reason, _cut(status.message or "the rollout failed"), READY, "Failed")
    if state.attempt is not None or phase in (ROLLING, PRUNING, Outcome.WAITING):
        said = next(iter((*status.unhealthy, status.message)), "") or "is being applied"
        return StatusCondition(READY, "Unknown", _camel(phase) or "InProgress", _cut(said), READY, "In Progress")
    if not state.commit:
        return StatusCondition(READY, "Unknown", "NotStarted", "was not applied yet", READY, "Not Started")
    return _applied(state)


def _applied(state: State) -> StatusCondition:
    health, commit = state.health, f"commit {state.commit[:12]} is applied"
    worst = next(iter(health.worst), "")
    if health.state == HealthState.DEGRADED:
        return StatusCondition(READY, "False", "Degraded", _cut(f"{commit}; {worst}"), READY, "Finished")
    if health.state == HealthState.PROGRESSING:
        return StatusCondition(READY, "Unknown", "Progressing", _cut(f"{commit}; {worst}"), READY, "In Progress")
    return StatusCondition(READY, "True", "Applied", _cut(commit), READY, "Finished")


# --- groups and steps
def _parts(steps: Sequence[StepRecord]) -> Iterator[StatusCondition]:
    """Yield each group's condition before those of its steps."""
    groups: dict[str, list[StepRecord]] = {}
    for step in steps:
        groups.setdefault(step.group, []).append(step)
    types: set[str] = set()
    for group, own in groups.items():
        current = _current(own)
        yield _condition(_unique(types, f"Group-{_slug(group)}"), group, current, _said(own, current))
        for step in own:
            current = _current([step])
            yield _condition(_unique(types, f"Step-{_slug(group)}-{_slug(step.step)}"), step.step, current, _said([step], current))


def _current(steps: Sequence[StepRecord]) -> CurrentStatus:
    outcomes = [step.outcome for step in steps]
    if FAILED in outcomes:
        return "Failed"
    if all(outcome in (DONE, SKIPPED) for outcome in outcomes):
        return "Finished"
    return "In Progress" if any(step.started or step.outcome for step in steps) else "Not Started"


def _said(steps: Sequence[StepRecord], current: CurrentStatus) -> str:
    """Return the reason of a failure, or what is waited for."""
    wanted = (step for step in steps if (step.outcome == FAILED if current == "Failed" else step.started and not step.outcome))
    step = next(wanted, None)
    if step is None:
        return ""
    said = " ".join(step.message.split())
    return said if len(steps) == 1 or not said else f"{step.step}: {said}"


def _condition(kind: str, name: str, current: CurrentStatus, message: str) -> StatusCondition:
    return StatusCondition(kind, _STATUS[current], _REASONS[current], _cut(message), _cut(name), current)


def _unique(taken: set[str], wanted: str) -> str:
    found, number = wanted, 1
    while found in taken:
        number += 1
        found = f"{wanted}-{number}"
    taken.add(found)
    return found


def _slug(name: str) -> str:
    """Return a name as a part of a condition's type, whose letters are few."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name[:_NAME]).strip("-") or "unnamed"


def _camel(word: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[^A-Za-z0-9]+", word))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# --- beside what others have written
def _merged(before: Sequence[Live], wanted: Iterable[StatusCondition], generation: int, now: str) -> list[Live]:
    """Return the conditions of others, in their places, and ours; those without a type are Locutus' own, which ours replace."""
    ours = {str(each["type"]): each for each in before if isinstance(each.get("type"), str) and _OURS.fullmatch(each["type"])}
    made = {each.type: each.plain(ours.get(each.type), generation, now) for each in wanted}
    kept = [made.pop(str(each["type"]), None) if each["type"] in ours else each for each in before if isinstance(each.get("type"), str)]
    return [each for each in kept if each is not None] + list(made.values())


def _count(value: Any) -> int:
    return value if type(value) is int else 0
