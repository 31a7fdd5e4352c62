"""What a hook deletes of what lives under its name: counted, unless a rollout made it as this hook, and the mark is ours alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from handler.engine.planner.hook_dry_run import deletions
from handler.model.names import FIELD_MANAGER, identity_of
from handler.model.plan import Action, Cause, Change
from handler.plan.hooks import PlannedHooks, is_made, separate
from handler.rollout.hook_annotations import ROLLOUT
from tests.unit.plan.samples import OURS, desired, document, entry, fields_of, member

HOOK, POLICY = "argocd.argoproj.io/hook", "argocd.argoproj.io/hook-delete-policy"
UNDER_WAY = "0123456789ab 2026"
FINISHED = {"conditions": [{"type": "Complete", "status": "True"}]}


def hook(kind: str = "ConfigMap", policy: str = "", phases: str = "PreSync", api: str = "v1") -> dict[str, Any]:
    return document(kind, "web", api, metadata={"annotations": {HOOK: phases} | ({POLICY: policy} if policy else {})})


def lives(body: dict[str, Any], mark: str = "", managers: Iterable[str] = (FIELD_MANAGER,), **metadata: Any) -> dict[str, Any]:
    """What lives of ours under a hook's name; with a rollout's mark, owned by these managers."""
    made = {ROLLOUT: mark} if mark else {}
    owned = fields_of({"metadata": {"annotations": made}})
    entries = [entry(owned, manager, api=body["apiVersion"]) for manager in managers]
    return member(document(body["kind"], "web", body["apiVersion"]), annotations=made, managedFields=entries, **metadata)


def by_hooks(body: dict[str, Any], live: dict[str, Any]) -> list[Change]:
    planned: PlannedHooks
    _, planned = separate(desired(body))
    return [*deletions(OURS, {identity_of(live): live}, planned, planned.due(), UNDER_WAY).values()]


@pytest.mark.parametrize(
    ("policy", "action"),
    [
        ("", Action.RECREATE),
        ("BeforeHookCreation", Action.RECREATE),
        ("HookFailed", Action.RECREATE),
        ("HookSucceeded", Action.PRUNE),
        ("BeforeHookCreation,HookSucceeded", Action.PRUNE),
    ],
)
@pytest.mark.parametrize(("mark", "cause"), [("", Cause.HOOK), ("PreSync another", Cause.REPEATED)])
def test_every_policy_deletes_a_member_in_the_plan(policy: str, action: Action, mark: str, cause: Cause) -> None:
    body = hook(policy=policy)
    (change,) = by_hooks(body, lives(body, mark))
    (gone,) = change.gone
    assert (change.action, gone.cause, gone.counted, gone.is_member) == (action, cause, cause is Cause.HOOK, True)
    assert gone.returns is (action is Action.RECREATE)


@pytest.mark.parametrize("policy", ["HookSucceeded", "HookFailed"])
@pytest.mark.parametrize("status", [{}, FINISHED])
def test_a_job_that_was_a_member_is_counted_whether_it_runs_or_has_finished(policy: str, status: dict[str, Any]) -> None:
    body = hook("Job", policy, api="batch/v1")
    (change,) = by_hooks(body, lives(body) | {"status": status})
    assert change.cause is Cause.HOOK


@pytest.mark.parametrize("managers", [("kubectl",), (FIELD_MANAGER, "kubectl"), ()])
def test_a_mark_that_isnt_ours_alone_makes_nothing_a_hooks_own(managers: tuple[str, ...]) -> None:
    body = hook()
    live = lives(body, "PreSync another", managers)
    assert not is_made(live)
    assert [change.cause for change in by_hooks(body, live)] == [Cause.HOOK]


@pytest.mark.parametrize(
    ("body", "metadata"),
    [
        (hook(), {"annotations": {"anneal.dev/prune": "disabled"}}),
        (hook(), {"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        (hook(), {"labels": {"applyset.kubernetes.io/part-of": "another"}}),
        (hook("PersistentVolumeClaim"), {}),
        (hook("StatefulSet", api="apps/v1"), {}),
        (hook(phases="Skip"), {}),
    ],
)
def test_what_is_kept_or_goes_already_or_is_anothers_isnt_deleted(body: dict[str, Any], metadata: dict[str, Any]) -> None:
    found = lives(body)
    for part, values in metadata.items():
        found["metadata"][part] = {**found["metadata"][part], **values} if isinstance(values, dict) else values
    assert by_hooks(body, found) == []


@pytest.mark.parametrize(("policy", "goes"), [("BeforeHookCreation", []), ("HookSucceeded", [Cause.REPEATED])])
def test_what_the_rollout_under_way_has_made_goes_only_afterwards(policy: str, goes: list[Cause]) -> None:
    body = hook("Job", policy, api="batch/v1")
    assert [change.cause for change in by_hooks(body, lives(body, f"PreSync {UNDER_WAY}"))] == goes
