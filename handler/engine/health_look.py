"""A tick's look at health, where no process lives that watches it: of a target that ran a moment ago, or isn't well. Reads only.

Law: it is worth no run's failure. What can't be read leaves the record as it is, and that grows old.
"""

from __future__ import annotations

from handler.cluster.live import Object
from handler.engine.health.custom_health import CustomHealth
from handler.engine.health.target_health import MISSING, HealthLook, expressed, judged_absent, judged_live
from handler.engine.planner.members import Members
from handler.engine.run.context import RunContext
from handler.health.kstatus import judge
from handler.model.errors import AnnealError
from handler.model.health import Health, HealthState
from handler.model.names import Identity, identity_of
from handler.state.record_format import seconds_of

_RECENT = 600.0  # seconds after a run in which what it has applied may still change by itself


def look(run: RunContext) -> None:
    """Look at the objects that the record names, if its target is one to look at; the run keeps what it has seen."""
    if not run.deps.looks or run.job.dry_run or not _is_due(run):
        return
    custom, planner = run.deps.health, run.deps.planner
    named = judged_live(run.state, custom)
    ours = Members(planner.api, planner.discovery, planner.target, planner.ours, planner.scopes)
    try:
        live = {identity_of(each): each for each in ours.listed({each.group_kind for each in named})}
        verdicts = _judged([each for identity, each in live.items() if identity in named], planner.api.server_time(), custom)
    except AnnealError:
        return
    run.round.looked = HealthLook(verdicts | dict.fromkeys(judged_absent(run.state, custom) - live.keys(), MISSING))


def _judged(objects: list[Object], now: float, custom: CustomHealth) -> dict[Identity, Health]:
    asked = [each for each in objects if custom.covers(identity_of(each).group_kind)]
    usual = {identity_of(each): judge(each, 0, now) for each in objects}
    return usual | expressed(custom, asked)


def _is_due(run: RunContext) -> bool:
    state = run.state
    recent = bool(state.history) and run.deps.clock() - seconds_of(state.history[0].started) < _RECENT
    return recent or state.health.state != HealthState.HEALTHY
