"""Annotations of other tools that steer an apply: what comes of them on a cluster, never in our own words."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.names import FIELD_MANAGER, IDENTITY, PART_OF, Identity, applyset_id
from handler.model.plan import Action
from handler.model.result import Outcome, Result
from tests.fakes.apiserver.server import Asked
from tests.unit.engine.in_memory_shop import DONE, Body, InMemoryShop, body, config_map, path_of

pytestmark = pytest.mark.slow

FLUX = "kustomize.toolkit.fluxcd.io"
SYNC = "argocd.argoproj.io/sync-options"
EXCLUSIONS = [{f"{FLUX}/reconcile": "disabled"}, {f"{FLUX}/ssa": "Ignore"}]


def secret(name: str, value: str, **metadata: Any) -> Body:
    return body(name, "Secret", metadata=metadata, data={"value": value})


def seen(shop: InMemoryShop, document: Body) -> tuple[str, str, object]:
    """Return uid, resourceVersion and data of what lives."""
    live = shop.live(document)
    assert live, f"{document['metadata']['name']} is gone"
    return live["metadata"]["uid"], live["metadata"]["resourceVersion"], live.get("data")


def kept(result: Result) -> dict[str, str]:
    """Return what a plan leaves alone and why, by name."""
    assert result.plan
    return {each.identity.name: each.reason for each in result.plan.changes if each.action is Action.SKIP}


# --- only where it is missing
@pytest.mark.parametrize(
    "mark",
    [
        {"annotations": {f"{FLUX}/ssa": "IfNotPresent"}},
        {"labels": {f"{FLUX}/ssa": "ifnotpresent"}},
        {"annotations": {"kapp.k14s.io/update-strategy": "skip"}},
        {"annotations": {"client.lifecycle.config.k8s.io/mutation": "ignore"}},
    ],
    ids=str,
)
def test_a_secret_that_is_only_created_is_never_overwritten_by_the_placeholder_of_git(
    shop: InMemoryShop, mark: dict[str, dict[str, str]]
) -> None:
    live, made = shop.create(secret("password", "real")), secret("made", "")
    before = seen(shop, live)
    shop.push(secret("password", "placeholder", **mark), secret("made", "first", **mark))
    shop.applied()
    first = seen(shop, made)
    assert (seen(shop, live), first[2]) == (before, {"value": "first"})
    shop.push(secret("password", "other", **mark), secret("made", "second", **mark))
    shop.run()
    shop.run("drift")
    assert (seen(shop, live), seen(shop, made)) == (before, first)
    shop.push(config_map("rest"))
    shop.applied()
    assert seen(shop, live) == before, "what was never ours isn't pruned"
    assert shop.live(made) is None, "what was created is ours, and goes with its file"


# --- left alone by git
@pytest.mark.parametrize("marks", [*EXCLUSIONS, {"kapp.k14s.io/noop": ""}, {"kluctl.io/ignore": "true"}], ids=str)
def test_an_object_ignored_by_annotation_in_git_is_neither_created_applied_adopted_nor_pruned(
    shop: InMemoryShop, marks: dict[str, str]
) -> None:
    theirs, ours = shop.create(secret("theirs", "live")), config_map("ours")
    shop.push(ours, config_map("rest"))
    shop.applied()
    shop.annotate(ours, note="by hand")
    before = seen(shop, theirs), seen(shop, ours)
    absent = config_map("absent", annotations=marks)
    left = (secret("theirs", "placeholder", annotations=marks), config_map("ours", "2", annotations=marks), absent)
    shop.push(*left, config_map("rest", "2"))
    assert kept(shop.applied()) == dict.fromkeys(("theirs", "ours", "absent"), ": ".join(*marks.items()) + ", set in git")
    for trigger in ("drift", "tick", "drift"):
        assert shop.run(trigger).outcome is Outcome.UNCHANGED
    assert ((seen(shop, theirs), seen(shop, ours)), shop.live(absent)) == (before, None)
    assert {identity.name for identity in shop.state().declared} >= {"theirs", "ours", "absent"}
    assert shop.state().orphans == ()
    shop.push(config_map("rest", "2"))
    shop.applied()
    assert seen(shop, theirs) == before[0]
    assert shop.live(ours) is None, "live carries no mark: once git drops a member, it goes"


# --- left alone live
@pytest.mark.parametrize("part", ["annotations", "labels"])
@pytest.mark.parametrize("marks", EXCLUSIONS, ids=str)
def test_a_live_reconcile_disabled_annotation_prevents_apply_adoption_and_prune_until_it_goes(
    shop: InMemoryShop, marks: dict[str, str], part: str
) -> None:
    ((key, value),) = marks.items()
    theirs, ours = shop.create(secret("theirs", "live")), secret("ours", "one")
    shop.push(ours, config_map("rest"))
    shop.applied()
    for each in (theirs, ours):
        shop.patch(each, {"metadata": {part: {key: value.upper()}}})
    before = seen(shop, theirs), seen(shop, ours)
    shop.push(secret("theirs", "placeholder"), secret("ours", "two"), config_map("rest", "2"))
    assert set(kept(shop.applied()).values()) == {f"{key}: {value.upper()}, set live"}
    ended = shop.run("drift")
    assert (ended.outcome, ended.message) == (Outcome.UNCHANGED, "live equals git, but for 2 left alone")
    assert (ended.counts, (seen(shop, theirs), seen(shop, ours))) == ({"unchanged": 1, "skipped": 2}, before)
    shop.push(config_map("rest", "2"))
    shop.run()
    shop.run("drift")
    assert (seen(shop, theirs), seen(shop, ours)) == before, "the mark keeps a member that git drops, too"
    assert [orphan.identity.name for orphan in shop.state().orphans] == ["ours"]
    shop.push(secret("theirs", "two"), secret("ours", "two"))
    for each in (theirs, ours):
        shop.patch(each, {"metadata": {part: {key: None}}})
    shop.applied()
    shop.applied("drift")
    assert [seen(shop, each)[2] for each in (theirs, ours)] == [{"value": "two"}] * 2


def test_a_reconcile_disabled_annotation_that_we_applied_ends_once_git_drops_it(shop: InMemoryShop) -> None:
    """An object that was applied with the mark before it was read: git drops the mark, and the object is brought to git again."""
    a = config_map("a")
    shop.push(a)
    shop.applied()
    marks = {f"{FLUX}/reconcile": "disabled", IDENTITY: Identity("", "ConfigMap", "shop", "a").mark("shop")}
    earlier = config_map("a", annotations=marks, labels={PART_OF: applyset_id("anneal-shop", "anneal-system")})
    path = path_of(Identity("", "ConfigMap", "shop", "a"))
    shop.server.must(Asked("PATCH", path, {"fieldManager": FIELD_MANAGER, "force": "true"}, earlier, "application/apply-patch+yaml", ""))
    shop.push(config_map("a", "2"))
    shop.applied()
    assert seen(shop, a)[2] == {"key": "2"}
    assert f"{FLUX}/reconcile" not in (shop.live(a) or {})["metadata"]["annotations"]


# --- merged with what others wrote
@pytest.mark.parametrize("side", ["git", "live"])
def test_ssa_merge_takes_nothing_over_at_adoption(shop: InMemoryShop, side: str) -> None:
    for name in "ab":
        shop.create({**config_map(name), "data": {"key": "0", "theirs": "1"}}, "kubectl-client-side-apply")
    if side == "live":
        shop.annotate(config_map("a"), **{f"{FLUX}/ssa": "merge"})
    given: dict[str, Any] = {"annotations": {f"{FLUX}/ssa": "Merge"}} if side == "git" else {}
    shop.push(config_map("a", **given), config_map("b"))
    shop.applied()
    assert seen(shop, config_map("a"))[2] == {"key": "1", "theirs": "1"}
    assert seen(shop, config_map("b"))[2] == {"key": "1"}, "without it, what kubectl applied and git doesn't declare goes"
    assert shop.run("drift").outcome is Outcome.UNCHANGED


def test_an_object_in_a_missing_namespace_with_ssa_ignore_is_refused_before_the_first_write(shop: InMemoryShop) -> None:
    shop.configure(namespaces=("shop", "made"))
    space = body("made", "Namespace", space="", metadata={"annotations": {f"{FLUX}/ssa": "Ignore"}})
    shop.push(space, config_map("a", space="made"), config_map("b"))
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused")
    assert 'namespaces "made" not found' in str(result.problems)
    assert shop.live(config_map("b")) is None


# --- between the plan and its write
def test_a_reconcile_disabled_annotation_set_after_the_plan_still_counts(shop: InMemoryShop) -> None:
    a = secret("a", "1")
    shop.push(a, config_map("b"))
    shop.applied()
    shop.push(secret("a", "2"), config_map("b", "2"))
    result = shop.meeting("PATCH", "a", lambda: shop.annotate(a, **{f"{FLUX}/reconcile": "disabled"}))
    assert result.outcome is Outcome.APPLIED
    assert kept(result) == {"a": f"{FLUX}/reconcile: disabled, set live"}
    assert seen(shop, a)[2] == {"value": "1"}


def test_ssa_if_not_present_doesnt_overwrite_an_object_created_after_the_plan(shop: InMemoryShop) -> None:
    real = secret("a", "real")
    shop.push(secret("a", "placeholder", annotations={f"{FLUX}/ssa": "IfNotPresent"}), config_map("b"))
    result = shop.meeting("PATCH", "a", lambda: shop.create(real))
    assert result.outcome is Outcome.APPLIED
    live = shop.live(real) or {}
    assert (live["data"], live["metadata"].get("labels")) == (real["data"], None)


# --- made anew, or replaced
FORCES = [
    {f"{FLUX}/force": "enabled"},
    {SYNC: "Force=true"},
    {SYNC: " Force=true , ServerSideApply=true"},
    {"kapp.k14s.io/update-strategy": "fallback-on-replace"},
]
SIDES = [(marks, side) for marks in FORCES for side in ("git", "live") if side == "git" or "kapp" not in str(marks)]
"""kapp reads its own in git alone."""


@pytest.mark.parametrize(("marks", "side"), SIDES, ids=str)
def test_force_makes_an_object_anew_only_where_an_immutable_field_changes(shop: InMemoryShop, marks: dict[str, str], side: str) -> None:
    given: dict[str, Any] = {"annotations": marks} if side == "git" else {}
    plain, fixed = config_map("plain", **given), config_map("fixed", **given) | {"immutable": True}
    shop.push(plain, fixed)
    shop.applied()
    for each in (plain, fixed) if side == "live" else ():
        shop.annotate(each, **marks)
    before = [seen(shop, each)[0] for each in (plain, fixed)]
    shop.push(plain | {"data": {"key": "2"}}, fixed | {"data": {"key": "2"}})
    result = shop.applied()
    assert result.plan
    assert {each.identity.name: each.action for each in result.plan.writes} == {"plain": Action.UPDATE, "fixed": Action.RECREATE}
    assert [seen(shop, each)[0] == uid for each, uid in zip((plain, fixed), before, strict=True)] == [True, False]


def test_without_force_an_immutable_field_is_refused_and_nothing_is_written(shop: InMemoryShop) -> None:
    fixed = config_map("fixed") | {"immutable": True}
    shop.push(fixed, config_map("a"))
    shop.applied()
    shop.written.clear()
    shop.push(fixed | {"data": {"key": "2"}}, config_map("a", "2"))
    assert (shop.run().code, shop.written) == ("plan-refused", [])


@pytest.mark.parametrize("side", ["git", "live"])
def test_replace_is_an_apply_that_leaves_what_others_wrote(shop: InMemoryShop, side: str) -> None:
    given: dict[str, Any] = {"annotations": {SYNC: "Replace=true"}} if side == "git" else {}
    a = config_map("a", **given)
    shop.push(a)
    shop.applied()
    if side == "live":
        shop.annotate(a, **{SYNC: "Replace=true,Force=true"})
    shop.patch(a, {"data": {"theirs": "1"}}, "controller")
    uid = seen(shop, a)[0]
    shop.push(config_map("a", "2", **given))
    shop.applied()
    assert seen(shop, a)[::2] == (uid, {"key": "2", "theirs": "1"})


# --- refused
REFUSED = {
    "Force=true,Replace=true": {SYNC: "Replace=true, Force=true"},
    "always-replace": {"kapp.k14s.io/update-strategy": "always-replace"},
    "versioned": {"kapp.k14s.io/versioned": ""},
    "change-rule": {"kapp.k14s.io/change-rule.first": "upsert after upserting shop/db"},
    "delete": {"kluctl.io/delete": "true"},
    "ignore-conflicts": {"kluctl.io/ignore-conflicts-field-1": "spec.replicas"},
    "apply-time-mutation": {"config.kubernetes.io/apply-time-mutation": "- sourceRef: {kind: ConfigMap, name: a}"},
    "IfNotPresnt": {f"{FLUX}/ssa": "IfNotPresnt"},
    "disbaled": {f"{FLUX}/reconcile": "disbaled"},
    "Prune=False": {SYNC: "ServerSideApply=true,Prune=False"},
}


def test_unsupported_annotations_of_other_tools_are_refused_all_at_once_before_the_first_write(shop: InMemoryShop) -> None:
    shop.push(config_map("a"))
    shop.applied()
    shop.written.clear()
    shop.push(config_map("a", "2"), *(config_map(f"c{number}", annotations=marks) for number, marks in enumerate(REFUSED.values())))
    result = shop.run()
    assert (result.outcome, result.code, shop.written) == (Outcome.FAILED, "plan-refused", [])
    problems = {problem.subject: problem for problem in result.problems}
    assert problems.keys() == {f"ConfigMap/shop/c{number}" for number in range(len(REFUSED))}
    for number, word in enumerate(REFUSED):
        problem = problems[f"ConfigMap/shop/c{number}"]
        assert (word in problem.message, problem.place, bool(problem.fix)) == (True, f"shop/ConfigMap-c{number}.json:1", True)


def test_an_unknown_value_of_a_live_annotation_is_noted_and_changes_nothing(shop: InMemoryShop) -> None:
    shop.create(config_map("b", "0", annotations={f"{FLUX}/ssa": "Ignor"}))
    shop.push(config_map("a"))
    shop.applied()
    shop.annotate(config_map("a"), **{f"{FLUX}/reconcile": "disbaled"})
    shop.push(config_map("a", "2"), config_map("b"))
    result = shop.applied()
    assert result.plan
    assert sorted(result.plan.notes) == [
        f"ConfigMap/shop/a: {FLUX}/reconcile: disbaled, set live, means nothing to its tool",
        f"ConfigMap/shop/b: {FLUX}/ssa: Ignor, set live, means nothing to its tool",
    ]
    assert [seen(shop, config_map(name))[2] for name in "ab"] == [{"key": "2"}, {"key": "1"}]


def test_a_local_config_object_needs_no_served_kind_and_no_whitelisted_namespace(shop: InMemoryShop) -> None:
    marks = {"config.kubernetes.io/local-config": "true"}
    shop.push(config_map("a"), body("shop", "Kptfile", "kpt.dev/v1", space="", metadata={"annotations": marks}))
    result = shop.applied()
    assert result.plan
    assert result.plan.notes == ("Kptfile/shop is left out: config.kubernetes.io/local-config: true, set in git",)
    shop.push(config_map("a"))
    assert shop.run("drift").outcome in DONE
