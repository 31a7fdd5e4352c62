"""A plan of one update and one prune, and results of its run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.plan import Action, Change, FieldChange, Hold, Plan
from handler.model.result import ONLY_PLANNED, Outcome, Result

ONE = Identity("apps", "Deployment", "shop", "api")
TWO = Identity("", "Service", "shop", "old")
FIELDS = (FieldChange("spec.replicas", "2", "3", "kubectl-edit"), FieldChange("spec.paused", "", "true"))
MANIFEST = Manifest.of({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api", "namespace": "shop"}}, "api.yaml:1")
PRUNED = Change(Action.PRUNE, TWO, "u2", "9", "no longer declared")
HELD = Hold("58eb1fd1ec42", ("2 of 3 live objects",), (PRUNED.key(),))
PLAN = Plan(
    "shop", "c" * 40, ((Change(Action.UPDATE, ONE, "u1", "8", fields=FIELDS, manifest=MANIFEST),),), (PRUNED,), ("a note",), HELD, 3
)


def result(outcome: Outcome, plan: Plan | None = PLAN, **more: Any) -> Result:
    done = {"written": plan.writes} if plan and outcome not in ONLY_PLANNED else {}
    made = Result("shop", outcome, "c" * 40, "oneoff", "message", plan.counts() if plan else {}, plan=plan, duration=1.25)
    return replace(made, **(done | more))
