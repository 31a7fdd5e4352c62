"""Deletes the webhook configurations that go before all else, and judges what they guarded; what is refused then brings them back.

An API server that calls a webhook for some seconds more, as each caches configurations, is asked again until the deadline of a request.

Law: nothing else is written before. Killed in between, the configuration is gone, as git has it, and the next run plans without it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handler.cluster.live import probe
from handler.cluster.webhooks import CONFIGURATIONS
from handler.cluster.write import Writer
from handler.engine.apply.apply import CREATE_ONLY, Applier
from handler.engine.apply.prune import Pruner
from handler.model.errors import AccessDenied, ApiRefused, ClusterUnavailable, Moved, PlanRefused, Problem
from handler.model.names import Identity
from handler.model.plan import Action


def clear_the_way(pruner: Pruner, applier: Applier) -> None:
    """Do so. Raises PlanRefused, AccessDenied, ClusterUnavailable, each with what became of them; what deletions and the fence raise."""
    dead, plan = pruner.planned.decision.missing.dead, pruner.planned.plan
    going = [change for change in plan.prunes if change.identity in dead.guarded and change.writes]
    if not going:
        return
    saved = probe(pruner.planner.api, [(CONFIGURATIONS[one.identity.kind], "", one.identity.name) for one in going])
    pruner.first(going)
    dead.cleared = True
    guarded = {one for change in going for one in dead.guarded[change.identity]}
    gone = {each.identity for each in pruner.outcomes if each.writes}
    try:
        applier.judge([change for change in plan.changes if change.identity in guarded and change.deferred])
    except (ApiRefused, PlanRefused, AccessDenied, ClusterUnavailable) as error:
        back = [_applied_again(pruner, one, body) for one, body in saved.items() if one in gone]
        # tried again it would go and come back each time: what keeps the object now waits for a person
        kind = PlanRefused if back and isinstance(error, ClusterUnavailable) and error.webhook else type(error)
        raise kind(*error.problems, *back) from error


def _applied_again(pruner: Pruner, one: Identity, body: dict[str, Any]) -> Problem:
    """Apply a configuration as it lived, and say so."""
    seen = "was deleted first, for its webhook didn't answer; what it guards is refused all the same, so it"
    try:
        Writer(pruner.planner.api, pruner.fence).apply(CONFIGURATIONS[one.kind], body, "", CREATE_ONLY)
    except (ApiRefused, AccessDenied, ClusterUnavailable, Moved) as error:
        return Problem(str(one), f"{seen} was to be applied again, which failed: {error.problems[0].message}")
    remade = [replace(each, action=Action.RECREATE) for each in pruner.outcomes if each.identity == one]
    pruner.outcomes[:] = [*(each for each in pruner.outcomes if each.identity != one), *remade]
    pruner.wrote(remade)
    return Problem(
        str(one), f"{seen} is applied again as it was", fix="correct what is refused: the configuration goes with the next commit"
    )
