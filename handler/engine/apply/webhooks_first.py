"""Deletes the webhook configurations that go before all else, and judges what they guarded; what is refused then brings them back.

An API server that calls a webhook for some seconds more, as each caches configurations, is asked again until the deadline of a request.

Law: nothing else is written before. What comes back names the commit, for which it doesn't go first again. Killed in between, it is gone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from handler.cluster.live import probe
from handler.cluster.webhooks import CONFIGURATIONS
from handler.cluster.write import Writer
from handler.engine.apply.apply import CREATE_ONLY
from handler.engine.apply.prune import Pruner
from handler.engine.planner.dead_webhooks import BROUGHT_BACK
from handler.model.errors import AnnealError, ClusterUnavailable, LeaseError, Problem, Stopping
from handler.model.names import Identity
from handler.model.plan import Action, Change


def clear_the_way(pruner: Pruner) -> None:
    """Do so. Raises what `DeadWebhooks.judge` does, with what became of the configurations; what deletions and the fence raise."""
    dead, api, saved = pruner.planned.decision.missing.dead, pruner.planner.api, dict[Identity, dict[str, Any]]()
    going = _deleted(pruner, dead.guarded)
    while going:
        saved |= probe(api, [(CONFIGURATIONS[one.identity.kind], "", one.identity.name) for one in going])
        pruner.first(going)
        api.awaited.clear()  # what caches the configuration still is waited for
        try:
            dead.judge()
        except (LeaseError, Stopping):
            raise
        except AnnealError as error:
            webhook = error.webhook if isinstance(error, ClusterUnavailable) else None
            going = [change for change in _deleted(pruner, dead.dropped(webhook or "")) if change.identity not in saved]
            if going:
                continue  # another one doesn't answer, either
            gone = {each.identity for each in pruner.outcomes if each.writes}
            # an outage names no webhook, and says nothing of the object: the next run may try again
            mark = {} if webhook == "" else {BROUGHT_BACK: pruner.planned.plan.commit}
            error.problems += tuple(_applied_again(pruner, one, body, mark) for one, body in saved.items() if one in gone)
            raise
        return


def _deleted(pruner: Pruner, wanted: Collection[Identity]) -> list[Change]:
    return [change for change in pruner.planned.plan.prunes if change.identity in wanted and change.writes]


def _applied_again(pruner: Pruner, one: Identity, body: dict[str, Any], mark: dict[str, str]) -> Problem:
    """Apply a configuration as it lived, with a mark, and say so."""
    seen = "was deleted first, for its webhook didn't answer; what it guards is refused all the same, so it"
    body["metadata"]["annotations"] = {**(body["metadata"].get("annotations") or {}), **mark}
    try:
        Writer(pruner.planner.api, pruner.fence).apply(CONFIGURATIONS[one.kind], body, "", CREATE_ONLY)
    except LeaseError:
        raise
    except AnnealError as error:
        return Problem(str(one), f"{seen} was to be applied again, which failed: {error.problems[0].message}")
    remade = [replace(each, action=Action.RECREATE) for each in pruner.outcomes if each.identity == one]
    pruner.outcomes[:] = [*(each for each in pruner.outcomes if each.identity != one), *remade]
    pruner.wrote(remade)
    return Problem(
        str(one), f"{seen} is applied again as it was", fix="correct what is refused: the configuration goes with the next commit"
    )
