"""Annotations of other tools that force, replace, or ask for what isn't done: what comes of them is read with kubectl."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.plan import Action
from handler.model.result import Outcome
from tests.e2e.documents import claim, config_map, definition, job, offer, service
from tests.e2e.hook_jobs import held
from tests.e2e.live_annotations import FLUX, annotate, by_hand, seen
from tests.e2e.one_target import Shop, told

SYNC = "argocd.argoproj.io/sync-options"


# --- made anew, or replaced
FORCES = [
    {f"{FLUX}/force": "enabled"},
    {SYNC: "Force=true"},
    {SYNC: " Force=true , ServerSideApply=true"},
    {"kapp.k14s.io/update-strategy": "fallback-on-replace"},
]


SIDES = [(marks, side) for marks in FORCES for side in ("git", "live") if side == "git" or "kapp" not in str(marks)]
"""kapp reads its own in git alone."""


@pytest.mark.parametrize(("marks", "side"), SIDES, ids=lambda part: part if isinstance(part, str) else "-".join(part.values()).strip())
def test_force_makes_an_object_anew_only_where_an_immutable_field_changes(shop: Shop, marks: dict[str, str], side: str) -> None:
    given: dict[str, Any] = {"annotations": marks} if side == "git" else {}
    older, newer = (held(job(shop.name, "b", image, **given)) for image in ("migrate:1", "migrate:2"))  # a finished one needs no force
    shop.push(service(shop.name, "a", **given), older)
    shop.applied()
    if side == "live":
        for kind, name in (("service", "a"), ("job", "b")):
            annotate(shop, kind, name, *(f"{key}={value}" for key, value in marks.items()))
    before = seen(shop, service(shop.name, "a"))[0], seen(shop, older)[0]
    shop.push(service(shop.name, "a", 81, **given), newer)
    result = shop.applied()
    assert result.plan
    assert {each.identity.kind: each.action for each in result.plan.writes} == {"Service": Action.UPDATE, "Job": Action.RECREATE}
    after = seen(shop, service(shop.name, "a"))[0], seen(shop, older)[0]
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_without_force_an_immutable_field_is_refused_and_nothing_is_written(shop: Shop) -> None:
    older, newer = (held(job(shop.name, "b", image)) for image in ("migrate:1", "migrate:2"))  # one that has finished is made anew
    shop.push(older, config_map(shop.name, "a"))
    shop.applied()
    before = shop.versions()
    shop.push(newer, config_map(shop.name, "a", {"key": "2"}))
    assert shop.run().code == "plan-refused"
    assert shop.versions() == before


@pytest.mark.parametrize("marks", FORCES, ids=lambda marks: "-".join(marks.values()).replace(" ", ""))
def test_force_never_deletes_what_holds_data(shop: Shop, marks: dict[str, str]) -> None:
    volume = claim(shop.name, "data", annotations=marks)
    shop.push(volume)
    shop.applied()
    before = seen(shop, volume)
    wider = claim(shop.name, "data", annotations=marks)
    wider["spec"]["accessModes"] = ["ReadWriteMany"]
    shop.push(wider)
    assert shop.run().code == "plan-refused"
    assert seen(shop, volume) == before


@pytest.mark.parametrize("side", ["git", "live"])
def test_replace_is_an_apply_that_leaves_what_others_wrote(shop: Shop, side: str) -> None:
    given = {"annotations": {SYNC: "Replace=true"}} if side == "git" else {}
    shop.push(config_map(shop.name, "a", **given))
    shop.applied()
    if side == "live":
        annotate(shop, "cm", "a", f"{SYNC}=Replace=true,Force=true")
    shop.kubectl.run("patch", "cm", "a", "-n", shop.name, "--field-manager=controller", "-p", '{"data": {"theirs": "1"}}')
    uid = seen(shop, config_map(shop.name, "a"))[0]
    shop.push(config_map(shop.name, "a", {"key": "2"}, **given))
    shop.applied()
    assert seen(shop, config_map(shop.name, "a"))[::2] == (uid, {"key": "2", "theirs": "1"})


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


def test_unsupported_annotations_of_other_tools_are_refused_all_at_once_before_the_first_write(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    before = shop.versions()
    documents = [config_map(shop.name, f"c{number}", annotations=marks) for number, marks in enumerate(REFUSED.values())]
    shop.push(config_map(shop.name, "a", {"key": "2"}), *documents)
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused"), told(result)
    problems = {problem.subject: problem for problem in result.problems}
    assert problems.keys() == {f"ConfigMap/{shop.name}/c{number}" for number in range(len(REFUSED))}
    for number, word in enumerate(REFUSED):
        problem = problems[f"ConfigMap/{shop.name}/c{number}"]
        assert word in problem.message
        assert problem.place == f"deploy/ConfigMap-{shop.name}-c{number}.yaml:1"
        assert problem.fix
    assert shop.versions() == before
    assert all(shop.live(document) is None for document in documents)


def test_an_unknown_value_of_a_live_annotation_is_noted_and_changes_nothing(shop: Shop) -> None:
    by_hand(shop, config_map(shop.name, "b", {"key": "0"}, annotations={f"{FLUX}/ssa": "Ignor"}))
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    annotate(shop, "cm", "a", f"{FLUX}/reconcile=disbaled")
    shop.push(config_map(shop.name, "a", {"key": "2"}), config_map(shop.name, "b"))
    result = shop.applied()
    assert result.plan
    assert sorted(result.plan.notes) == [
        f"ConfigMap/{shop.name}/a: {FLUX}/reconcile: disbaled, set live, means nothing to its tool",
        f"ConfigMap/{shop.name}/b: {FLUX}/ssa: Ignor, set live, means nothing to its tool",
    ]
    assert seen(shop, config_map(shop.name, "a"))[2] == {"key": "2"}
    assert seen(shop, config_map(shop.name, "b"))[2] == {"key": "1"}


def test_a_kind_that_is_not_served_is_refused_though_its_dry_run_is_to_be_skipped(shop: Shop) -> None:
    marks = {SYNC: "SkipDryRunOnMissingResource=true"}
    shop.push(config_map(shop.name, "a"), offer(shop.group, shop.name, "o", annotations=marks))
    result = shop.run()
    assert result.code == "plan-refused"
    assert "SkipDryRunOnMissingResource=true applies nothing unseen" in result.problems[0].message
    assert shop.live(config_map(shop.name, "a")) is None
    shop.push(config_map(shop.name, "a"), definition(shop.group), offer(shop.group, shop.name, "o", annotations=marks))
    shop.applied()
    shop.assert_converged()


def test_a_local_config_object_needs_no_served_kind_and_no_whitelisted_namespace(shop: Shop) -> None:
    marks = {"config.kubernetes.io/local-config": "true"}
    local = {"apiVersion": "kpt.dev/v1", "kind": "Kptfile", "metadata": {"name": "shop", "annotations": marks}}
    shop.push(config_map(shop.name, "a"), local)
    result = shop.applied()
    assert result.plan
    assert result.plan.notes == ("Kptfile/shop is left out: config.kubernetes.io/local-config: true, set in git",)
    shop.push(config_map(shop.name, "a"))
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    shop.assert_converged()
