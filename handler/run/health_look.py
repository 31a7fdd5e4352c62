"""A tick's look at health, where no process lives that watches it: of a target that ran a moment ago, or isn't well. Reads only.

Law: it is worth no run's failure. What can't be read leaves the record as it is, and that grows old.
"""

from __future__ import annotations

from handler.cluster.live import Object, members
from handler.model.errors import AccessDenied, AnnealError
from handler.model.health import Health, HealthState, Status
from handler.model.names import PART_OF, identity_of
from handler.rollout.health import judge
from handler.run.context import Context
from handler.run.health import Look, expressed, judged_absent, judged_live
from handler.run.live_secrets import live_hiding, without_fields
from handler.state.rules import seconds_of

RECENT = 600.0
"""Seconds after a run in which what it has applied may still change by itself."""
_MISSING = Health(Status.NOT_FOUND, "is not there")


def look(run: Context) -> None:
    """Look at the objects that the record names, if its target is one to look at; the run keeps what it has seen."""
    if not run.rooms.looks or run.job.dry_run or not _is_due(run):
        return
    try:
        run.looked = _looked(run)
        if run.looked.says():
            planner = run.rooms.planner
            run.mask = live_hiding(planner.api, run.state.declared, planner.applyset, run.rooms.mask)
    except AnnealError:
        run.looked = None


def _looked(run: Context) -> Look:
    live = {identity_of(each): each for each in _listed(run)}
    now = run.rooms.planner.api.server_time()
    custom, named = run.rooms.health, judged_live(run.state, run.rooms.health)
    mine = {identity: each for identity, each in live.items() if identity in named}
    verdicts = {identity: judge(each, 0, now) for identity, each in mine.items() if not custom.covers(identity.group_kind)}
    verdicts |= expressed(custom, [each for identity, each in mine.items() if custom.covers(identity.group_kind)])
    shown = {identity: without_fields(mine[identity], found) for identity, found in verdicts.items()}
    return Look(shown | dict.fromkeys(judged_absent(run.state, custom) - live.keys(), _MISSING))


def _is_due(run: Context) -> bool:
    state = run.state
    recent = bool(state.history) and run.rooms.clock() - seconds_of(state.history[0].started) < RECENT
    return recent or state.health.state != HealthState.HEALTHY


def _listed(run: Context) -> list[Object]:
    """LIST the recorded kinds: everywhere at once, or in each allowed namespace where RBAC is namespaced."""
    planner = run.rooms.planner
    kinds = sorted({each.group_kind for each in judged_live(run.state, run.rooms.health)})
    resources = [found for kind in kinds if (found := planner.discovery.preferred(kind))]
    selector = f"{PART_OF}={planner.applyset}"
    try:
        return list(members(planner.api, resources, selector, planner.scopes, vanished=set()))
    except AccessDenied:
        if planner.scopes is not None or "*" in planner.target.namespaces:
            raise
    return list(members(planner.api, resources, selector, planner.target.namespaces, vanished=set()))
