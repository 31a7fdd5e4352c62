"""What the status of an instance's object says of its rollout: conditions, from the record. Pure.

    Ready                        what kstatus and `kubectl wait --for=condition=Ready` read
    Rollout                      the rollout as a whole
    Rollout.Group.<group>        each group of a Rollout, and
    Rollout.Step.<group>.<step>  each of its steps and hooks, as far as there is room

Law: a condition is a standard one, with `name` and `currentStatus` of Locutus beside it. Conditions of other types are others' and stay as
they are. A generation that was observed is never lowered.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from handler.config.settings import Target
from handler.engine.planner.due import DONE, FAILED, SKIPPED
from handler.engine.run.readiness import allowing
from handler.model.advice import advice
from handler.model.errors import AuthorError, OperatorError, RolloutFailed
from handler.model.health import HealthState
from handler.model.quotation import quoted
from handler.model.result import Outcome, Result
from handler.state import run_history
from handler.state.record import Progress, State, StepRecord
from handler.state.record_format import stamp
from handler.state.suspension import CONFIGURED, suspension

NOT_STARTED, IN_PROGRESS, FINISHED, HAS_FAILED = "Not Started", "In Progress", "Finished", "Failed"
READY, ROLLOUT = "Ready", "Rollout"
MOST = 100
"""Conditions of ours in one status."""
LONGEST = 1000
"""Characters of a message; etcd holds an object of 1.5 MiB at most."""
_SLUG, _DIGITS = 80, 8
_TRUE, _FALSE, _UNKNOWN = "True", "False", "Unknown"
_OF_PROGRESS = {NOT_STARTED: (_UNKNOWN, "NotStarted"), IN_PROGRESS: (_UNKNOWN, "InProgress")}
_OF_PROGRESS |= {FINISHED: (_TRUE, "Finished"), HAS_FAILED: (_FALSE, "Failed")}
_OF_HEALTH = {HealthState.PROGRESSING: _UNKNOWN, HealthState.DEGRADED: _FALSE, HealthState.UNKNOWN: _UNKNOWN}


@dataclass(frozen=True, slots=True)
class InstanceCondition:
    """One condition without its time. `status`: True, False or Unknown; `current`: Locutus' state; `name`: verbatim."""

    type: str
    status: str
    reason: str
    message: str
    name: str
    current: str


def conditions(target: Target, state: State | None, now: float, unrecorded: Result | None = None) -> tuple[InstanceCondition, ...]:
    """Return what a record says of an instance. `state`: None: there is none; `unrecorded`: a failure that the record couldn't take."""
    shown = _shown(state) if state else None
    status, reason, message, current = _failed(unrecorded) if unrecorded else _overall(target, state, now)
    whole = InstanceCondition(READY, status, reason, message, target.name, current)
    parts = [*_groups(shown), *_steps(shown)] if shown else []
    room = MOST - 2
    rest = max(len(parts) - room, 0)
    more = advice("{text} more groups and steps aren't shown; see: anneal status {}", rest, target.name) if rest else ""
    said = "\n".join(filter(None, (message, more)))
    return (whole, InstanceCondition(ROLLOUT, *_of(current, reason), said, target.name, current), *parts[:room])


def merged(live: Mapping[str, Any], wanted: Iterable[InstanceCondition], generation: int, now: float) -> Any:
    """Return the status of a live object with these conditions; equal to what it has where nothing changes.

    `generation`: that the conditions are of, 0: unknown or not counted; `now`: seconds since the epoch.
    """
    status = live.get("status")
    status = status if isinstance(status, dict) else {}
    stands = status.get("conditions")
    stands = stands if isinstance(stands, list) else []
    known = {_type(each): each for each in stands if isinstance(each, dict)}
    observed = max(generation, _count(status.get("observedGeneration")))
    made = {each.type: _condition(each, known.get(each.type), observed, now) for each in wanted}
    kept = [made.pop(each["type"]) if _type(each) in made else each for each in stands if _type(each) in made or not _is_ours(_type(each))]
    return {**status, "conditions": [*kept, *made.values()], **({"observedGeneration": observed} if observed else {})}


def is_of_another_form(live: Mapping[str, Any]) -> bool:
    """Whether a live object's status, or its conditions, are no such thing: what others keep there would be lost."""
    status = live.get("status")
    return not isinstance(status, dict | None) or not isinstance((status or {}).get("conditions"), list | None)


def is_told(live: Mapping[str, Any]) -> bool:
    """Whether a live object's status says already how it stands."""
    status = live.get("status")
    rows = status.get("conditions") if isinstance(status, dict) else None
    return any(_type(each) == READY for each in rows) if isinstance(rows, list) else False


def is_open(live: Mapping[str, Any]) -> bool:
    """Whether a status says that something goes on, or is of an older generation, or says nothing: its writer may have ended meanwhile."""
    status = live.get("status")
    known = status.get("conditions") if isinstance(status, dict) else None
    ready = next((each for each in known or () if isinstance(each, dict) and each.get("type") == READY), None)
    if ready is None or ready.get("status") == _UNKNOWN:
        return True
    return 0 < _count(ready.get("observedGeneration")) < _count(live["metadata"].get("generation"))


def _condition(each: InstanceCondition, known: Any, observed: int, now: float) -> dict[str, Any]:
    moved = known.get("lastTransitionTime") if known and known.get("status") == each.status else None
    message = each.message
    return {
        "type": each.type,
        "status": each.status,
        "reason": each.reason,
        "message": message if len(message) <= LONGEST else f"{message[: LONGEST - 1]}…",
        "lastTransitionTime": moved if isinstance(moved, str) and moved else stamp(now),
        **({"observedGeneration": observed} if observed else {}),
        "name": each.name,
        "currentStatus": each.current,
    }


def _count(value: Any) -> int:
    return value if type(value) is int else 0


def _type(condition: Any) -> str:
    return str(condition.get("type")) if isinstance(condition, dict) else ""


def _is_ours(kind: str) -> bool:
    return kind in (READY, ROLLOUT) or kind.startswith((f"{ROLLOUT}.Group.", f"{ROLLOUT}.Step."))


_Said = tuple[str, str, str, str]  # status, reason and message of the whole, and Locutus' state


def _overall(target: Target, state: State | None, now: float) -> _Said:
    if pause := suspension(target, state, now):
        out = "set `suspend: false` in anneal.yaml" if pause is CONFIGURED else advice("anneal resume {}", target.name)
        why = f": {quoted(pause.reason)}" if pause.reason else ""
        return _UNKNOWN, "Suspended", f"suspended by {quoted(pause.by)}{why}; to go on: {out}", _current(state)
    if state is None:
        return _UNKNOWN, "NotStarted", "its first run hasn't begun", NOT_STARTED
    if target.instance and target.instance.terminating:
        return _FALSE, "Pruning", "it is being deleted; its objects are pruned once it is gone: a finalizer may keep it", IN_PROGRESS
    if state.held:
        way = advice("{text}; to allow it: {text}", "; ".join(map(quoted, state.held.reasons)), allowing(target.name, state.held))
        return _FALSE, "Held", way, _current(state)
    if state.awaits:
        on = "; ".join(f"waiting for {each.testimony}" for each in state.awaits.on)
        return _UNKNOWN, "WaitingForDependency", on, _current(state)
    return _of_phase(target, state)


def _of_phase(target: Target, state: State) -> _Said:
    status = state.status
    if status.phase == Outcome.FAILED:
        return _failure(target.name, status.code, status.who, status.message)
    if status.phase == run_history.PRUNING:
        return _FALSE, "Pruning", f"waits until these are gone: {status.message}", IN_PROGRESS
    if state.attempt:
        return _of_attempt(state, state.attempt.commit)
    if state.pin and state.pin.automatic:
        out = advice("push what mends it, or try it once more: anneal unpin {}", target.name)
        return _FALSE, "RolledBack", f"rolled back to {state.commit[:12]}: {quoted(state.pin.reason)}; {out}", HAS_FAILED
    return _applied(target.name, state) if state.commit else (_UNKNOWN, "NotStarted", status.message, NOT_STARTED)


def _of_attempt(state: State, commit: str) -> _Said:
    status, newest = state.status, state.history[0] if state.history else None
    missing = "\n".join(status.unhealthy)
    if newest and (newest.outcome, newest.commit) == (Outcome.SUPERSEDED, commit):
        return _UNKNOWN, "Superseded", newest.message, IN_PROGRESS
    if state.waiting and not state.waiting.over:
        seen = f"waits for {state.waiting.what}" + (f": {missing}" if missing else "")
        return _UNKNOWN, "WaitingForHealth", seen, IN_PROGRESS
    return _UNKNOWN, "InProgress", missing or status.message or f"{commit[:12]} is being applied", IN_PROGRESS


def _applied(name: str, state: State) -> _Said:
    health = state.health
    seen = "\n".join(health.worst)
    if health.state and (found := HealthState(health.state)) is not HealthState.HEALTHY:
        reason = "HealthUnknown" if found is HealthState.UNKNOWN else found.capitalize()
        return _OF_HEALTH[found], reason, seen or f"its objects are {found}", FINISHED
    if state.status.phase == Outcome.DRIFTED:
        return _TRUE, "Drifted", advice("{text}; to see it: anneal gap {}", state.status.message or "live differs from git", name), FINISHED
    return _TRUE, "Applied", f"{state.commit[:12]} is applied", FINISHED


def _current(state: State | None) -> str:
    """Return where a rollout stands that is held up."""
    if state is None or not (state.commit or state.attempt):
        return NOT_STARTED
    if state.status.phase == Outcome.FAILED:
        return HAS_FAILED
    return IN_PROGRESS if state.attempt else FINISHED


def _failed(result: Result) -> _Said:
    return _failure(result.target, result.code, result.who, result.message or "\n".join(map(str, result.problems)))


def _failure(name: str, code: str, who: str, seen: str) -> _Said:
    again = advice("to try it now: anneal apply {}", name)
    if code == RolloutFailed.code:
        return _FALSE, "RolloutFailed", f"{seen}; push what mends it, or {again} --force", HAS_FAILED
    if who == AuthorError.who:
        return _FALSE, "Refused", f"{seen}; mend it in git, and push", HAS_FAILED
    if who == OperatorError.who:
        return _FALSE, "NeedsOperator", f"{seen}; then {again}", HAS_FAILED
    return _FALSE, "Retrying", f"{seen}; it is retried by itself, {again}", HAS_FAILED


def _of(current: str, reason: str) -> tuple[str, str]:
    status, plain = _OF_PROGRESS[current]
    return status, plain if current in (NOT_STARTED, FINISHED) else reason


def _shown(state: State) -> Progress | None:
    """Return the rollout that is of what the record says: under way, of the applied set, or failed and not left yet."""
    known = state.rollout
    if known is None or known.outcome == SKIPPED:
        return None
    failed = known.outcome == FAILED and state.attempt is not None and state.attempt.commit == known.commit
    return known if failed or not known.outcome or known.digest == state.digest else None


def _groups(rollout: Progress) -> Iterator[InstanceCondition]:
    steps: dict[str, list[StepRecord]] = {}
    for step in rollout.steps:
        steps.setdefault(step.group, []).append(step)
    for name, mine in steps.items():
        current = _of_group(mine, ended_well=rollout.outcome == DONE)
        failed = [f"{each.step}: {each.message}" for each in mine if each.outcome == FAILED]
        over = sum(each.outcome == DONE for each in mine)
        said = "\n".join(failed) or f"{over} of {len(mine)} steps are finished"
        yield InstanceCondition(f"{ROLLOUT}.Group.{_slug(name)}", *_OF_PROGRESS[current], said, name, current)


def _of_group(steps: list[StepRecord], *, ended_well: bool) -> str:
    outcomes = {each.outcome for each in steps}
    if FAILED in outcomes and not ended_well:  # a step that may fail has no say in how a rollout ends
        return HAS_FAILED
    if "" not in outcomes:
        return NOT_STARTED if outcomes == {SKIPPED} else FINISHED
    return IN_PROGRESS if any(each.started for each in steps) else NOT_STARTED


def _steps(rollout: Progress) -> Iterator[InstanceCondition]:
    for each in rollout.steps:
        current = {DONE: FINISHED, FAILED: HAS_FAILED, SKIPPED: NOT_STARTED}.get(each.outcome, IN_PROGRESS if each.started else NOT_STARTED)
        status, reason = _OF_PROGRESS[current]
        reason = "Skipped" if each.outcome == SKIPPED else reason
        kind = f"{ROLLOUT}.Step.{_slug(each.group)}.{_slug(each.step)}"
        yield InstanceCondition(kind, status, reason, each.message or f"{each.action} {each.object}", each.step, current)


def _slug(name: str) -> str:
    """Return a name as a part of a condition's type; a digest keeps two apart that come to the same."""
    found = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:_SLUG].strip("-")
    return found if found == name else "-".join(filter(None, (found, hashlib.sha256(name.encode()).hexdigest()[:_DIGITS])))


def generation_of(target: Target, settings: str, state: State | None) -> int:
    """Return the generation of an instance's object that its record is of; 0: of an earlier one. `settings`: the target's digest."""
    if target.instance is None or state is None:
        return 0
    recorded = state.attempt.settings if state.attempt else state.settings
    return target.instance.generation if recorded == settings else 0
