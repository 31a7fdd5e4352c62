"""The health of a target: verdicts of its objects (of plans, waits, WATCHes or a tick's look) become the health in its record. Pure.

    degraded         something has failed or is gone, makes no progress, or was healthy and has lost that unchanged
    unknown          something can't be judged, and nothing is worse
    progressing      something isn't healthy yet
    healthy          else

Law: a record is written for another verdict, never for another look. A degraded target stays degraded until all of it is healthy, or
another commit comes: pods that start again and again aren't progress.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from handler.config.settings import Target, Wait
from handler.engine.health.custom_health import CustomHealth
from handler.health.kstatus import ALWAYS_HEALTHY, SELF_REMOVED, judge
from handler.model.errors import AnnealError
from handler.model.field_masking import without_credentials
from handler.model.health import Health, HealthState, Status
from handler.model.names import GroupKind, Identity, identity_of
from handler.model.rollout import Mode
from handler.model.tree import printable
from handler.plan.admission import CRD, NAMESPACE, Desired
from handler.state.record import State, TargetHealth
from handler.state.record_format import seconds_of, stamp

SHOWN = 10  # objects, and notes, that the record names
_LINE = 700
_REFRESH = 2.0
"""Drift intervals after which a verdict that hasn't changed is written once more: health that none has judged for three is unknown."""
_WORTH = {Status.FAILED: 0, Status.NOT_FOUND: 1, Status.UNKNOWN: 3, Status.TERMINATING: 4, Status.IN_PROGRESS: 5, Status.CURRENT: 6}
_STUCK = 2
_APART = (Mode.HOOK, Mode.LEAVE)
"""How a declared object is treated that says nothing of the target's health: it comes and goes, or is another's."""
MISSING = Health(Status.NOT_FOUND, "is not there")
_STANDS = (NAMESPACE, CRD)  # kinds of which a run writes none without waiting until it stands
_UNSEEN = Health(Status.IN_PROGRESS, "was written a moment ago, and hasn't been looked at since")
_OURS = (MISSING, _UNSEEN)
"""Verdicts whose words are ours."""
_ASK_AGAIN = 30.0  # seconds until expressions are asked again that couldn't be evaluated
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class HealthLook:
    """A look at a target's objects. `evidence`: why some aren't healthy, in words; `stuck`: those that don't come forward by themselves."""

    verdicts: Mapping[Identity, Health]
    evidence: Mapping[Identity, str] = field(default_factory=dict)
    stuck: Collection[Identity] = ()

    def without(self, others: Collection[Identity]) -> HealthLook:
        """Return the look at all objects but these."""
        return replace(self, verdicts={each: found for each, found in self.verdicts.items() if each not in others})

    def completed(self, removed: Collection[Identity]) -> HealthLook:
        """Return the look with the Jobs that have removed themselves (`removed_jobs`), where it has seen none of them."""
        return replace(self, verdicts={**dict.fromkeys(removed, SELF_REMOVED), **self.verdicts})

    def worst(self) -> list[Identity]:
        """Return what isn't healthy, the worst first."""
        return sorted((each for each, found in self.verdicts.items() if not found.healthy), key=lambda each: (self._worth(each), each))

    def _worth(self, identity: Identity) -> int:
        return _STUCK if identity in self.stuck else _WORTH[self.verdicts[identity].status]

    def state(self) -> HealthState:
        """Return how all of them do, by this look alone."""
        worst = min(map(self._worth, self.worst()), default=_WORTH[Status.CURRENT])
        if worst <= _STUCK:
            return HealthState.DEGRADED
        if worst == _WORTH[Status.UNKNOWN]:
            return HealthState.UNKNOWN
        return HealthState.HEALTHY if worst == _WORTH[Status.CURRENT] else HealthState.PROGRESSING


def after_writing(
    planned: Mapping[Identity, Health], written: Iterable[Desired], waited: Iterable[tuple[Desired, Health]], now: float
) -> HealthLook:
    """Return the look that a run which wrote has had at its target's objects: `planned`, then `written`, then `waited` for.

    What needs a status to be healthy isn't known to be, without a wait. `now`: seconds since the epoch.
    """
    items = [*written]
    mine = [item for item in items if item.mode not in _APART and item.identity.group_kind not in _STANDS]
    fresh = (item for item in mine if item.identity.group_kind not in ALWAYS_HEALTHY)
    judged_ones = {item.identity: judge(_new(item.manifest.body(), now), 0, now) for item in fresh}
    found = {identity: each if each.healthy else _UNSEEN for identity, each in judged_ones.items()}
    new = {item.identity for item in items}
    left = {identity: verdict for identity, verdict in planned.items() if identity not in new}
    return HealthLook({**left, **found, **{item.identity: each for item, each in waited if item.mode not in _APART}})


def _new(manifest: dict[str, Any], now: float) -> dict[str, Any]:
    """Return what is declared as if it were created `now`: its controller had no time to say something about it."""
    return {**manifest, "metadata": {**manifest["metadata"], "creationTimestamp": stamp(now)}}


@dataclass(slots=True)
class HealthOfPlan:
    """Judges the declared objects among those that a plan LISTs, as they pass by; `custom` expressions judge many at once, at the end."""

    desired: Mapping[Identity, Desired]
    now: float
    custom: CustomHealth
    _verdicts: dict[Identity, Health] = field(default_factory=dict)
    _expressed: dict[Identity, dict[str, Any]] = field(default_factory=dict)

    def judged(self, objects: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield each object on, judged; one that comes twice is judged by its later state."""
        for live in objects:
            identity = identity_of(live)
            item = self.desired.get(identity)
            if item is not None and item.mode not in _APART:
                self._judge(identity, live)
            yield live

    def _judge(self, identity: Identity, live: dict[str, Any]) -> None:
        if self.custom.covers(identity.group_kind):
            self._expressed[identity] = live
        elif identity.group_kind not in ALWAYS_HEALTHY:
            self._verdicts[identity] = judge(live, 0, self.now)

    def verdicts(self) -> dict[Identity, Health]:
        """Return how all that has passed by does."""
        return self._verdicts | expressed(self.custom, self._expressed.values())


def judged(
    before: TargetHealth, look: HealthLook, now: float, patience: float, closed: Collection[Identity], *, anew: bool = False
) -> TargetHealth:
    """Return the health for the record after a look; `before` itself where the verdict hasn't changed.

    `patience`: seconds for which a target may be progressing; `closed`: see `handler.plan.closed`; `anew`: another commit was
    applied, or something was written: progress counts from `now` on (seconds since the epoch).
    """
    state = look.state()
    if state is HealthState.PROGRESSING and not anew and _is_over(before, now, patience):
        state = HealthState.DEGRADED
    worst = tuple(_line(each, look, before, closed) for each in look.worst()[:SHOWN])
    noted = sorted(each for each, found in look.verdicts.items() if found.healthy and found.message)
    kept = tuple(_line(each, look, before, closed) for each in noted[:SHOWN])
    begins = state != before.state or (anew and state is HealthState.PROGRESSING)
    found = TargetHealth(str(state), stamp(now) if begins else before.since, stamp(now), worst, kept, before.apart, before.closed)
    return found if begins or _says(found) != _says(before) else before


def _line(identity: Identity, look: HealthLook, before: TargetHealth, closed: Collection[Identity]) -> str:
    """Say what an object lacks, and why; a look that knows no reason leaves the one that is recorded."""
    found, why = look.verdicts[identity], look.evidence.get(identity)
    said = printable(f"{identity}: {found.told(closed=identity in closed and found not in _OURS)}", _LINE)
    known = next((line for line in (*before.worst, *before.notes) if _NUMBERS.sub("0", line).startswith(_NUMBERS.sub("0", said))), "")
    return printable("; ".join(filter(None, (said, without_credentials(why)))), _LINE) if why is not None else known or said


def _is_over(before: TargetHealth, now: float, patience: float) -> bool:
    late = before.state == HealthState.PROGRESSING and now - seconds_of(before.since) >= patience
    return late or before.state == HealthState.DEGRADED


def _says(health: TargetHealth) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return what makes a verdict: another number of restarts, or of replicas, makes no other one; nor does another order."""
    worst, notes = (tuple(sorted(_NUMBERS.sub("0", line) for line in lines)) for lines in (health.worst, health.notes))
    return health.state, worst, notes


def renewed(before: TargetHealth, found: TargetHealth, now: float, interval: float) -> TargetHealth:
    """Return a verdict, its time brought up to date where the recorded one is old. `interval`: seconds between two drift runs."""
    old = bool(found.judged) and now - seconds_of(found.judged) >= _REFRESH * interval
    return replace(found, judged=stamp(now)) if found is before and old else found


def patience_of(target: Target) -> float:
    """Return for how many seconds a target may be progressing."""
    return (target.wait or Wait()).progress_timeout


def expressed(custom: CustomHealth, objects: Iterable[dict[str, Any]]) -> dict[Identity, Health]:
    """Judge live objects by the operator's expressions; where no child can be had for that, how they do isn't known, for a while."""
    asked = [*objects]
    try:
        return custom.verdicts(asked)
    except AnnealError as error:
        unknown = Health(Status.UNKNOWN, f"healthCheckExprs can't be evaluated now: {error}", again=_ASK_AGAIN)
        return {identity: unknown for identity in map(identity_of, asked) if custom.covers(identity.group_kind)}


def apart(desired: Mapping[Identity, Desired], skipped: Collection[Identity]) -> tuple[Identity, ...]:
    """Return what of a declared set isn't judged: hooks, which come and go, and what the plan leaves to others."""
    out = (each for each, item in desired.items() if item.mode in _APART or each in skipped)
    return tuple(sorted(out))


def judged_live(state: State, custom: CustomHealth) -> frozenset[Identity]:
    """Return what of a recorded set is judged where it lives."""
    kinds = {GroupKind(each.group, each.kind) for each in state.declared}
    judged_kinds = {(kind.group, kind.kind) for kind in kinds if kind not in ALWAYS_HEALTHY or custom.covers(kind)}
    out = frozenset(state.health.apart or ())
    return frozenset(each for each in state.declared if (each.group, each.kind) in judged_kinds and each not in out)


def judged_absent(state: State, custom: CustomHealth) -> frozenset[Identity]:
    """Return what of a recorded set is missed where it isn't there; no Job that removes itself, and nothing until `apart` is known."""
    return judged_live(state, custom) - removed_jobs(state, custom) if state.health.apart is not None else frozenset()


def removed_jobs(state: State, custom: CustomHealth) -> frozenset[Identity]:
    """Return the Jobs of a recorded set that were applied and remove themselves: one that isn't there has ended."""
    return judged_live(state, custom) & {each.identity for each in state.ran}
