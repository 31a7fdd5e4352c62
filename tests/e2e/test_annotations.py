"""Annotations of other tools that steer an apply, on a real cluster: what they keep is read with kubectl, never in Anneal's own words."""

from __future__ import annotations

import base64
import json

import pytest

from handler.config.settings import Wait
from handler.model.names import FIELD_MANAGER, IDENTITY, PART_OF, Identity
from handler.model.plan import Action
from handler.model.result import Outcome, Result
from tests.e2e.documents import config_map, deployment, namespace, secret
from tests.e2e.killed_runs import Wire
from tests.e2e.live_annotations import FLUX, annotate, by_hand, seen
from tests.e2e.meeting_writes import run_meeting, write_of
from tests.e2e.one_target import Shop, told

EXCLUSIONS = [{f"{FLUX}/reconcile": "disabled"}, {f"{FLUX}/ssa": "Ignore"}]


def kept(result: Result) -> dict[str, str]:
    """Return what a plan leaves alone and why, by identity."""
    assert result.plan
    return {str(each.identity): each.reason for each in result.plan.changes if each.action is Action.SKIP}


# --- only where it is missing
@pytest.mark.parametrize(
    "mark",
    [
        {"annotations": {f"{FLUX}/ssa": "IfNotPresent"}},
        {"labels": {f"{FLUX}/ssa": "ifnotpresent"}},
        {"annotations": {"kapp.k14s.io/update-strategy": "skip"}},
        {"annotations": {"client.lifecycle.config.k8s.io/mutation": "ignore"}},
    ],
    ids=lambda mark: "-".join(value for part in mark.values() for value in part.values()),
)
def test_a_secret_that_is_only_created_is_never_overwritten_by_the_placeholder_of_git(shop: Shop, mark: dict[str, dict[str, str]]) -> None:
    live = secret(shop.name, "password", "the real one")
    by_hand(shop, live)
    before = seen(shop, live)
    shop.push(secret(shop.name, "password", "placeholder", **mark), secret(shop.name, "made", "first", **mark))
    shop.applied()
    assert seen(shop, live) == before
    made = seen(shop, secret(shop.name, "made", ""))
    assert made[2] == {"value": base64.b64encode(b"first").decode()}
    shop.push(secret(shop.name, "password", "other", **mark), secret(shop.name, "made", "second", **mark))
    shop.run()
    shop.run("drift")
    assert seen(shop, live) == before
    assert seen(shop, secret(shop.name, "made", "")) == made
    shop.push(config_map(shop.name, "rest"))
    shop.applied()
    assert seen(shop, live) == before, "what was never ours isn't pruned"
    assert shop.live(secret(shop.name, "made", "")) is None, "what was created is ours, and goes with its file"


# --- left alone by git
@pytest.mark.parametrize(
    "marks", [*EXCLUSIONS, {"kapp.k14s.io/noop": ""}, {"kluctl.io/ignore": "true"}], ids=lambda marks: next(iter(marks)).replace("/", "-")
)
def test_an_object_ignored_by_annotation_in_git_is_neither_created_applied_adopted_nor_pruned(shop: Shop, marks: dict[str, str]) -> None:
    theirs = secret(shop.name, "theirs", "live")
    by_hand(shop, theirs)
    shop.push(config_map(shop.name, "ours"), config_map(shop.name, "rest"))
    shop.applied()
    ours = config_map(shop.name, "ours")
    annotate(shop, "cm", "ours", "note=by hand")
    before = seen(shop, theirs), seen(shop, ours)
    absent = config_map(shop.name, "absent", annotations=marks)
    shop.push(
        secret(shop.name, "theirs", "placeholder", annotations=marks),
        config_map(shop.name, "ours", {"key": "2"}, annotations=marks),
        absent,
        config_map(shop.name, "rest", {"key": "2"}),
    )
    result = shop.applied()
    names = (f"Secret/{shop.name}/theirs", f"ConfigMap/{shop.name}/ours", f"ConfigMap/{shop.name}/absent")
    assert kept(result) == dict.fromkeys(names, ": ".join(*marks.items()) + ", set in git")
    for trigger in ("drift", "tick", "drift"):
        ended = shop.run(trigger)
        assert ended.outcome is Outcome.UNCHANGED, told(ended)
    assert (seen(shop, theirs), seen(shop, ours)) == before
    assert shop.live(absent) is None
    assert {str(identity) for identity in shop.state().declared} >= set(kept(result))
    assert shop.state().orphans == ()
    shop.push(config_map(shop.name, "rest", {"key": "2"}))
    shop.applied()
    assert seen(shop, theirs) == before[0]
    assert shop.live(ours) is None, "live carries no mark: once git drops a member, it goes"


# --- left alone live
@pytest.mark.parametrize("verb", ["annotate", "label"])
@pytest.mark.parametrize("marks", EXCLUSIONS, ids=lambda marks: next(iter(marks)).replace("/", "-"))
def test_a_live_reconcile_disabled_annotation_prevents_apply_adoption_and_prune_until_it_goes(
    shop: Shop, marks: dict[str, str], verb: str
) -> None:
    ((key, value),) = marks.items()
    theirs, ours = secret(shop.name, "theirs", "live"), secret(shop.name, "ours", "one")
    by_hand(shop, theirs)
    shop.push(ours, config_map(shop.name, "rest"))
    shop.applied()
    for name in ("theirs", "ours"):
        shop.kubectl.run(verb, "secret", name, "-n", shop.name, f"{key}={value.upper()}")
    before = seen(shop, theirs), seen(shop, ours)
    shop.push(secret(shop.name, "theirs", "placeholder"), secret(shop.name, "ours", "two"), config_map(shop.name, "rest", {"key": "2"}))
    result = shop.applied()
    assert set(kept(result).values()) == {f"{key}: {value.upper()}, set live"}
    ended = shop.run("drift")
    assert (ended.outcome, ended.message) == (Outcome.UNCHANGED, "live equals git, but for 2 left alone")
    assert ended.counts == {"unchanged": 1, "skipped": 2}
    assert (seen(shop, theirs), seen(shop, ours)) == before
    shop.push(config_map(shop.name, "rest", {"key": "2"}))
    shop.run()
    shop.run("drift")
    assert (seen(shop, theirs), seen(shop, ours)) == before, "the mark keeps a member that git drops, too"
    assert [str(orphan.identity) for orphan in shop.state().orphans] == [f"Secret/{shop.name}/ours"]
    shop.push(secret(shop.name, "theirs", "two"), secret(shop.name, "ours", "two"))
    shop.kubectl.run(verb, "secret", "theirs", "ours", "-n", shop.name, f"{key}-")
    shop.applied()
    shop.applied("drift") if shop.run("drift").outcome is Outcome.DRIFTED else None
    shop.assert_converged()


def test_a_reconcile_disabled_annotation_that_we_applied_ends_once_git_drops_it(shop: Shop) -> None:
    """An object that was applied with the mark before it was read: git drops the mark, and the object is brought to git again."""
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    marks = {f"{FLUX}/reconcile": "disabled", IDENTITY: Identity("", "ConfigMap", shop.name, "a").mark(shop.name)}
    earlier = config_map(shop.name, "a", annotations=marks, labels={PART_OF: shop.applyset})
    shop.kubectl.run("apply", "--server-side", f"--field-manager={FIELD_MANAGER}", "-f", "-", given=json.dumps(earlier))
    shop.push(config_map(shop.name, "a", {"key": "2"}))
    shop.applied()
    shop.assert_converged()


# --- merged with what others wrote
@pytest.mark.parametrize("side", ["git", "live"])
def test_ssa_merge_takes_nothing_over_at_adoption(shop: Shop, side: str) -> None:
    marks = {f"{FLUX}/ssa": "Merge"}
    shop.kubectl.apply(config_map(shop.name, "a", {"key": "0", "theirs": "1"}), config_map(shop.name, "b", {"key": "0", "theirs": "1"}))
    if side == "live":
        annotate(shop, "cm", "a", f"{FLUX}/ssa=merge")
    shop.push(config_map(shop.name, "a", **({"annotations": marks} if side == "git" else {})), config_map(shop.name, "b"))
    shop.applied()
    assert seen(shop, config_map(shop.name, "a"))[2] == {"key": "1", "theirs": "1"}
    assert seen(shop, config_map(shop.name, "b"))[2] == {"key": "1"}, "without it, what kubectl applied and git doesn't declare goes"
    assert shop.run("drift").outcome is Outcome.UNCHANGED


# --- what waits for it
def test_an_object_with_reconcile_disabled_isnt_waited_for_though_others_depend_on_it(shop: Shop) -> None:
    shop.configure(wait=Wait(timeout=600.0, progress_timeout=600.0))
    shop.push(deployment(shop.name, "web", replicas=0), config_map(shop.name, "a"))
    shop.applied()
    never = {"spec": {"replicas": 1, "template": {"spec": {"nodeName": "nowhere"}}}}
    shop.kubectl.run("patch", "deployment", "web", "-n", shop.name, "--type=merge", "-p", json.dumps(never))
    annotate(shop, "deployment", "web", f"{FLUX}/reconcile=disabled")
    before = shop.versions([deployment(shop.name, "web")])
    after = {"config.kubernetes.io/depends-on": f"apps/namespaces/{shop.name}/Deployment/web, /namespaces/{shop.name}/ConfigMap/absent"}
    absent = config_map(shop.name, "absent", annotations={f"{FLUX}/ssa": "Ignore"})
    shop.push(deployment(shop.name, "web", "shop:2"), config_map(shop.name, "a", {"key": "2"}, annotations=after), absent)
    shop.applied()
    assert shop.versions([deployment(shop.name, "web")]) == before
    assert seen(shop, config_map(shop.name, "a"))[2] == {"key": "2"}


def test_an_object_in_a_missing_namespace_with_ssa_ignore_is_refused_before_the_first_write(shop: Shop) -> None:
    made = f"{shop.name}-jobs"
    shop.push(namespace(made, annotations={f"{FLUX}/ssa": "Ignore"}), config_map(made, "a"), config_map(shop.name, "b"))
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused"), told(result)
    assert f'namespaces "{made}" not found' in str(result.problems)
    assert shop.live(config_map(shop.name, "b")) is None


# --- between the plan and its write
def test_a_reconcile_disabled_annotation_set_after_the_plan_still_counts(shop: Shop, wired: Wire) -> None:
    shop.push(secret(shop.name, "a", "1"), config_map(shop.name, "b"))
    shop.applied()
    annotated: list[tuple[str, str, object]] = []

    def by_a_person() -> None:
        annotate(shop, "secret", "a", f"{FLUX}/reconcile=disabled")
        annotated.append(seen(shop, secret(shop.name, "a", "")))

    shop.push(secret(shop.name, "a", "2"), config_map(shop.name, "b", {"key": "2"}))
    result = run_meeting(shop, wired, write_of("PATCH", "/secrets/a"), by_a_person)
    assert result.outcome is Outcome.APPLIED, told(result)
    assert kept(result) == {f"Secret/{shop.name}/a": f"{FLUX}/reconcile: disabled, set live"}
    assert [seen(shop, secret(shop.name, "a", ""))] == annotated


def test_ssa_if_not_present_doesnt_overwrite_an_object_created_after_the_plan(shop: Shop, wired: Wire) -> None:
    placeholder = secret(shop.name, "a", "placeholder", annotations={f"{FLUX}/ssa": "IfNotPresent"})
    real = secret(shop.name, "a", "the real one")
    shop.push(placeholder, config_map(shop.name, "b"))
    result = run_meeting(shop, wired, write_of("PATCH", "/secrets/a"), lambda: by_hand(shop, real))
    assert result.outcome is Outcome.APPLIED, told(result)
    live = shop.live(real)
    assert live
    assert (live["data"], live["metadata"].get("labels")) == (real["data"], None)
