"""What a run writes before what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.model.plan import Due
from handler.model.rollout import ARGO_HOOK, Group, Mode, Rollout, Step
from handler.plan.admission import Desired
from handler.plan.hooks import separate
from handler.plan.order import order
from handler.plan.rollout import PlannedRollout
from handler.plan.write_order import WriteOrder
from handler.rollout.hook_annotations import ARGO_POLICY, ARGO_WAVE
from tests.unit.plan.samples import desired, document


def marked(kind: str, name: str, phase: str = "", wave: int = 0, policy: str = "") -> Desired:
    marks = {ARGO_WAVE: str(wave)} | ({ARGO_HOOK: phase} if phase else {}) | ({ARGO_POLICY: policy} if policy else {})
    (item,) = desired(document(kind, name, metadata={"annotations": marks}))
    return item


def coming(*items: Desired) -> WriteOrder:
    rest, planned_hooks = separate(items)
    ordered = order(rest, "", planned_hooks.first, planned_hooks.items)
    return WriteOrder.of(ordered.stages, planned_hooks, PlannedRollout(), planned_hooks.due())


ACCOUNT, POD = marked("ServiceAccount", "a"), marked("Pod", "p")


@pytest.mark.parametrize(
    ("first", "then", "before"),
    [
        (marked("ServiceAccount", "a", wave=-1), POD, True),
        (ACCOUNT, POD, False),
        (marked("ServiceAccount", "a", wave=1), POD, False),
        (marked("ServiceAccount", "a", "PreSync"), POD, True),
        (marked("ServiceAccount", "a", "PreSync", policy="HookSucceeded"), POD, False),
        (marked("ServiceAccount", "a", "PreSync"), marked("Pod", "p", "PreSync"), True),
        (marked("ServiceAccount", "a", "PreSync", policy="HookSucceeded"), marked("Pod", "p", "PreSync"), True),
        (marked("ServiceAccount", "a", "PreSync", 1), marked("Pod", "p", "PreSync"), False),
        (ACCOUNT, marked("Pod", "p", "PreSync"), False),
        (ACCOUNT, marked("Pod", "p", "Sync"), True),
        (marked("ServiceAccount", "a", "Sync"), marked("Pod", "p", "Sync"), True),
        (ACCOUNT, marked("Pod", "p", "PostSync"), True),
        (ACCOUNT, marked("Pod", "p", "SyncFail"), True),
        (marked("ServiceAccount", "a", "PostSync"), marked("Pod", "p", "SyncFail"), True),
    ],
)
def test_the_write_order_of_two_objects(first: Desired, then: Desired, *, before: bool) -> None:
    found = coming(first, then)
    assert found.is_before(first.identity, then.identity) is before
    assert not found.is_before(then.identity, first.identity) or not before


def test_an_object_that_the_run_doesnt_write_has_no_write_order() -> None:
    found = coming(POD)
    assert not found.is_before(ACCOUNT.identity, POD.identity)
    hook = marked("ServiceAccount", "a", "PreSync")
    rest, planned_hooks = separate((hook, POD))
    assert not WriteOrder.of(order(rest).stages, planned_hooks, PlannedRollout(), ()).is_before(hook.identity, POD.identity), "it isn't due"


@pytest.mark.parametrize(("at_once", "due", "before"), [(False, True, True), (True, True, False), (False, False, False)])
def test_steps_of_a_group_come_one_after_another_unless_they_go_at_once(*, at_once: bool, due: bool, before: bool) -> None:
    items = [replace(ACCOUNT, mode=Mode.APPLY), POD]
    steps = tuple(Step(item.identity.name, f"{item.identity.name}.yaml", item.identity, "CreateOrUpdate") for item in items)
    rollout = Rollout("r", (Group("main", steps, parallel=at_once),))
    planned_rollout = PlannedRollout(rollout, (tuple(items),))
    acts = [Due("main", step.name, step.identity, step.action) for step in steps] if due else []
    found = WriteOrder.of(planned_rollout.stages, separate(())[1], planned_rollout, acts)
    assert found.is_before(ACCOUNT.identity, POD.identity) is before
