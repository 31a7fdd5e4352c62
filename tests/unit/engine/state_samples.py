"""A recorded state, a plan and what they were made from, for tests of what a run leaves in the record."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from handler.engine.planner.desired import Inputs, Prepared
from handler.engine.planner.dry_run import DryRun
from handler.engine.planner.planner import Planned
from handler.engine.run.transitions import recorded
from handler.model.event import Delivery, Job
from handler.model.names import GroupKind, Identity
from handler.model.plan import Action, Change, Plan
from handler.model.tree import CommitInfo, ReadSet
from handler.plan.admission import Desired
from handler.state.record import (
    Approval,
    HeldPlan,
    Pin,
    State,
)
from tests.unit.plan.samples import desired, document

NOW, LATER = 1_772_366_400.0, 1_772_366_460.0

NOON, PAST_NOON = "2026-03-01T12:00:00Z", "2026-03-01T12:01:00Z"

COMMIT = CommitInfo("a" * 40, "Add web", "Ada", 1)

READS = ReadSet.of({"deploy/web.yaml": "b" * 40})

WEB, GONE = Identity("", "ConfigMap", "shop", "web"), Identity("", "Secret", "old", "gone")

CONFIG_MAP, SECRET, SERVICE = GroupKind("", "ConfigMap"), GroupKind("", "Secret"), GroupKind("", "Service")

INPUTS = Inputs(Prepared(COMMIT, READS, "rendered", ()), "settings")

KEYS = (("prune", "Secret/old/gone", "u"),)

APPROVAL = Approval("h1", READS.digest(), "settings", KEYS, "ada", NOON)

WAITING = HeldPlan("h1", ("many",), KEYS, COMMIT.sha, READS.digest(), "settings", NOON)

PIN = Pin("c" * 40)

DELIVERY = Delivery("1", "github", "refs/heads/main", COMMIT.sha, "ada", NOON)

PUSH, DRIFT = Job("shop", "push", deliveries=(DELIVERY,)), Job("shop", "drift")


def state(**parts: object) -> State:
    return replace(State("shop", "default", "cluster", "https://git.example.com/acme/shop.git"), **parts)  # type: ignore[arg-type]  # keywords


def planned(*changes: Change, prunes: tuple[Change, ...] = (), scopes: tuple[str, ...] | None = None) -> Planned:
    """A plan of one declared ConfigMap; live are it and what `prunes` name."""
    declared: dict[Identity, Desired] = {item.identity: item for item in desired(document())}
    present = frozenset({CONFIG_MAP} | {change.identity.group_kind for change in prunes})
    undecided = cast(DryRun, None)  # the server is asked nothing here
    return Planned(Plan("shop", COMMIT.sha, (changes,), prunes), present, {}, declared, undecided, scopes)


def record(before: State, plan: Planned, job: Job = PUSH, *, recovery: bool = False, due: float = 0.0) -> State:
    return recorded(before, INPUTS, plan, job, recovery=recovery, drift_due=due, now=NOW)


SKIPPED = Change(Action.SKIP, GONE, "u-gone", "7", "protected")

UPDATE = Change(Action.UPDATE, WEB, "u-web", "7")
