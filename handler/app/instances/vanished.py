"""Whether an instance's object is gone for certain; what else may hide it, says why nothing of the instance is pruned.

Law: gone is what the server says isn't there (a GET), while it serves the kind by the definition that the record knows. A definition that
is gone, goes, or was made anew has taken all of its objects along: that is no wish about any of them. Instances that are let go within a
minute are one entry of the template's history, so that they are counted across restarts.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from handler.app.instances.listed_objects import KindNotServed, Kinds, served
from handler.cluster.api import ApiRequest
from handler.cluster.live import Object
from handler.config.settings import Target
from handler.config.trigger_settings import WatchedResource
from handler.model.advice import advice
from handler.model.api_groups import is_kubernetes_own
from handler.model.errors import AccessDenied, ApiRefused
from handler.model.event import Job
from handler.model.instance import instance_name
from handler.model.names import Identity, Resource, run_id
from handler.model.result import Outcome
from handler.plan.admission import CRD
from handler.state import run_history
from handler.state.record import RecordedInstance, Run
from handler.state.record_format import seconds_of, stamp


@dataclass(frozen=True, slots=True)
class Kept:
    """Why an instance stays. `way_out`: what ends that; empty: nothing here does."""

    why: str
    way_out: str = ""

    def __str__(self) -> str:
        return f"{self.why} ({self.way_out})" if self.way_out else self.why


def retiring(name: str) -> str:
    """Return the way out of what keeps an instance for good."""
    return advice("to see what its end deletes: anneal retire {} --prune --dry-run", name)


@dataclass(frozen=True, slots=True)
class Absence:
    """What a look for an object that isn't among the instances has found.

    `gone`: for certain; `lives`: it is there, and isn't selected any more; `anew`: another one of its name is there; `unknown`: nothing is
    known. `kept`: why its instance stays then.
    """

    state: Literal["gone", "lives", "anew", "unknown"]
    kept: Kept = Kept("")


def look_for(ways: Kinds, template: Target, main: WatchedResource, known: RecordedInstance) -> Absence:
    """Look whether a recorded instance's object is gone. Raises AnnealError: it can't be asked."""
    identity = known.identity
    name = instance_name(template.name, identity.namespace, identity.name)
    try:
        resource = served(ways, template, main)
    except KindNotServed as error:
        return _unserved(error)
    if identity.group_kind != resource.group_kind or bool(identity.namespace) != resource.namespaced:
        why = f"the trigger's main resource is {resource.group_kind} now, and it is an instance for {identity}"
        return Absence("unknown", Kept(why, retiring(name)))
    live = _read(ways, template, resource, identity)
    if live is not None:
        return _lives(known, name, str(live["metadata"].get("uid")))
    if kept := _definition(ways, template, resource, known.definition, name):
        return Absence("unknown", kept)
    ways.discovery(template).refresh()  # it was served when the object was asked for, or is gone with it
    try:
        served(ways, template, main)
    except KindNotServed as error:
        return _unserved(error)
    return Absence("gone")


def _unserved(error: KindNotServed) -> Absence:
    return Absence("unknown", Kept(str(error.problems[0].message), error.problems[0].fix))


def _lives(known: RecordedInstance, name: str, uid: str) -> Absence:
    identity = known.identity
    if uid == known.uid:
        way_out = advice("correct the trigger, or delete that; {text}", retiring(name))
        return Absence("lives", Kept(f"{identity} lives, and the trigger doesn't select it any more", way_out))
    way_out = advice("if the trigger selects that, it is deployed by: anneal apply {}", name)
    return Absence("anew", Kept(f"another {identity} lives by now", way_out))


def _read(ways: Kinds, template: Target, resource: Resource, identity: Identity) -> Object | None:
    request = ApiRequest("GET", resource.path(identity.namespace, identity.name), subject=str(identity))
    try:
        return ways.api(template).expect(request)
    except ApiRefused as refused:
        if refused.status != 404:
            raise
    return None


def _definition(ways: Kinds, template: Target, resource: Resource, known: str, name: str) -> Kept | None:
    """Say why the definition of a custom kind may not be the one that the object had; None: it is, or the kind has none."""
    crd = f"{CRD.kind}/{resource.plural}.{resource.group}"
    try:
        uid, going = definition_of(ways, template, resource)
    except AccessDenied as denied:
        return Kept(f"{crd} can't be read, so it may have been deleted and made anew", denied.problems[0].fix or f"grant get on {crd}")
    if going:
        return Kept(f"{crd} is being deleted, and all objects with it", retiring(name))
    if uid == known:
        return None
    if not uid:
        return Kept(f"{crd} isn't there any more, and all objects went with it", retiring(name))
    why = f"{crd} was deleted and made anew" if known else f"its record doesn't say by which {crd} its object was served"
    return Kept(why, advice("create the object again; {text}", retiring(name)))


def definition_of(ways: Kinds, template: Target, resource: Resource) -> tuple[str, bool]:
    """Return the uid of a kind's definition, empty: it has none; and whether that is being deleted. Raises AnnealError, AccessDenied."""
    if is_kubernetes_own(resource.group):
        return "", False
    path = f"/apis/{CRD.group}/v1/customresourcedefinitions/{resource.plural}.{resource.group}"
    live = ways.api(template, impersonated=False).get(path)
    if live is None:
        return "", False  # of an aggregated API, or gone: then it isn't served
    return str(live["metadata"].get("uid") or ""), bool(live["metadata"].get("deletionTimestamp"))


TOGETHER = 60.0
"""Seconds in which instances that vanish count as vanishing together."""
_ENDED = "ended"


def with_ends(history: tuple[Run, ...], job: Job, names: Collection[str], now: float) -> tuple[Run, ...]:
    """Return a template's history with instances that a run lets go. `names`: theirs; `now`: Unix seconds."""
    before = history[0] if history and _ENDED in history[0].counts else None
    if before and now - seconds_of(before.started) < TOGETHER:
        count = before.counts[_ENDED] + len(names)
        known = [each for each in before.changed if each.endswith(_ENDED)]
        return (replace(before, counts={_ENDED: count}, changed=_lines(known, names, count), last=stamp(now)), *history[1:])
    entry = Run(job.run or run_id(job.target), job.cause, str(Outcome.APPLIED), stamp(now), last=stamp(now), actor=job.actor)
    entry = replace(entry, message="their objects are gone", counts={_ENDED: len(names)}, changed=_lines([], names, len(names)))
    return run_history.append(history, entry)


def _lines(known: list[str], names: Collection[str], count: int) -> tuple[str, ...]:
    lines = (*known, *(f"{name} {_ENDED}" for name in names))[: run_history.CHANGED]
    return lines if len(lines) == count else (*lines[:-1], f"and {count - len(lines) + 1} more")


def ended_lately(history: tuple[Run, ...], now: float) -> int:
    """Return how many instances were let go together with what vanishes now."""
    return sum(each.counts.get(_ENDED, 0) for each in history if _ENDED in each.counts and now - seconds_of(each.last) < TOGETHER)
