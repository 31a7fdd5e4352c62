"""What annotations of other tools ask for: each row of the table, read as its tool reads it, in git and live; and docs/annotations.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from handler.model.errors import PlanRefused
from handler.model.manifest import Manifest
from handler.model.rollout import Mode
from handler.plan import steering
from handler.plan.annotations import ANY, DROP, TABLE, AnnotationRow, Effect, Side
from handler.plan.hooks import separate
from handler.plan.prune import PROTECTIONS
from tests.unit.plan.samples import admission, desired, document, entry, fields_of, member
from tests.unit.rows import each_row

PAGE = Path(__file__).resolve().parents[3] / "docs" / "annotations.md"
FLUX, SYNC = "kustomize.toolkit.fluxcd.io", "argocd.argoproj.io/sync-options"
CASES = [(row, value) for row in TABLE for value in row.values]
SIDES = {Side.GIT: "git", Side.LIVE: "live", Side.BOTH: "both"}
WORDS = {Effect.REFUSE: "refused", Effect.IGNORE: "ignored"}


def spelled(row: AnnotationRow, value: str) -> dict[str, str]:
    """Return the annotation of a row, where any value or any key will do with one of them."""
    return {row.key.replace(ANY, ".x" if row.key.endswith(f"rule{ANY}") else ""): "x" if value == ANY else value}


def marked(marks: dict[str, str], part: str = "annotations", **more: Any) -> dict[str, Any]:
    return document(metadata={part: marks}, **more)


def asked(marks: dict[str, str], part: str = "annotations") -> steering.Steering:
    body = marked(marks, part)
    return steering.asked(Manifest.of(body, "web.yaml:1"), body)


def live(marks: dict[str, str], manager: str = "kubectl-annotate", part: str = "annotations") -> dict[str, Any]:
    return document(metadata={part: marks, "managedFields": [entry(fields_of({"metadata": {part: marks}}), manager)]})


# --- each row
@each_row("case", CASES)
def test_an_annotation_in_git_has_the_effect_of_its_row(case: tuple[AnnotationRow, str]) -> None:
    row, value = case
    found = asked(spelled(row, value))
    effect = row.effect if row.side & Side.GIT else Effect.IGNORE
    assert found.mode is {Effect.KEEP: Mode.KEEP, Effect.LEAVE: Mode.LEAVE}.get(effect)
    assert len(found.problems) == (effect is Effect.REFUSE)
    for problem in found.problems:
        assert row.key in problem.message
        assert (problem.place, problem.fix) == ("web.yaml:1", row.fix)
    manifest = Manifest.of(marked(spelled(row, value)), "web.yaml:1")
    assert steering.merges_others(document(), manifest.body()) is (effect is not Effect.MERGE)
    assert steering.may_recreate(document(), manifest) is (effect is Effect.RECREATE or value == "Force=true,Replace=true")


@each_row("case", CASES)
def test_a_live_annotation_has_the_effect_of_its_row(case: tuple[AnnotationRow, str]) -> None:
    row, value = case
    body, plain = live(spelled(row, value)), Manifest.of(document(), "web.yaml:1")
    effect = row.effect if row.side & Side.LIVE else Effect.IGNORE
    assert bool(steering.left_alone(body)) is (effect is Effect.LEAVE)
    assert steering.merges_others(body, plain.body()) is (effect is not Effect.MERGE)
    assert steering.may_recreate(body, plain) is (effect is Effect.RECREATE or value == "Force=true,Replace=true")
    protects = any(key == row.key and value.lower() in values for key, values in PROTECTIONS)
    assert protects is (effect in (Effect.PROTECT, Effect.LEAVE))
    assert not steering.note(body)


def test_a_refused_annotation_has_a_fix_and_no_other_has() -> None:
    assert [row.key for row in TABLE if bool(row.fix) is not (row.effect is Effect.REFUSE)] == []
    assert len({(row.key, value) for row, value in CASES}) == len(CASES)
    assert all(len({row.tool for row in TABLE if row.key == key}) == 1 for key in {row.key for row in TABLE})


# --- as its tool reads it
@pytest.mark.parametrize(
    ("marks", "part", "mode"),
    [
        ({f"{FLUX}/ssa": "IFNOTPRESENT"}, "annotations", Mode.KEEP),
        ({f"{FLUX}/ssa": "ifNotPresent"}, "labels", Mode.KEEP),
        ({f"{FLUX}/reconcile": "Disabled", f"{FLUX}/ssa": "IfNotPresent"}, "annotations", Mode.LEAVE),
        ({f"{FLUX}/ssa": ""}, "annotations", None),
        ({"kapp.k14s.io/noop": ""}, "annotations", Mode.LEAVE),
        ({"kapp.k14s.io/noop": ""}, "labels", None),
        ({"kapp.k14s.io/update-strategy": ""}, "annotations", None),
        ({"kluctl.io/ignore": "True"}, "annotations", Mode.LEAVE),
        ({"kluctl.io/ignore": "false"}, "annotations", None),
        ({"kluctl.io/ignore-conflicts": "0"}, "annotations", None),
        ({"config.kubernetes.io/local-config": "yes"}, "annotations", Mode.LEAVE),
        ({"config.kubernetes.io/local-config": "false"}, "annotations", None),
        ({SYNC: " Prune=false , ServerSideApply=true,"}, "annotations", None),
        ({"example.com/ssa": "Ignore"}, "annotations", None),
    ],
)
def test_case_labels_lists_and_what_is_off(marks: dict[str, str], part: str, mode: Mode | None) -> None:
    found = asked(marks, part)
    assert (found.mode, found.problems) == (mode, ())


@pytest.mark.parametrize(
    ("key", "value", "seen", "fix"),
    [
        (f"{FLUX}/ssa", "IfNotPresnt", "IfNotPresnt means nothing to Flux", "did you mean IfNotPresent?"),
        (f"{FLUX}/reconcile", "false", "false means nothing to Flux", "write one of disabled, enabled, or remove it"),
        (SYNC, "Force=true,prune=false", "prune=false means nothing to Argo CD", "did you mean Prune=false?"),
        ("kapp.k14s.io/update-strategy", "Skip", "Skip means nothing to kapp", "did you mean skip?"),
        ("kluctl.io/skip-delete", "never", "never means nothing to kluctl", "write one of true, t, 1, or remove it"),
        ("helm.sh/resource-policy", "keeep", "keeep means nothing to Helm", "did you mean keep?"),
        ("anneal.dev/prune", "false", "false means nothing to Anneal", "write one of disabled, allow, or remove it"),
        ("anneal.dev/prune", "Disabled", "Disabled means nothing to Anneal", "did you mean disabled?"),
        ("anneal.dev/recreate", "true", "true means nothing to Anneal", "write one of allow, or remove it"),
        (
            "anneal.dev/ignore",
            "/data/a,data.k",
            "data.k means nothing to Anneal",
            "write one of /… (JSON pointers to fields that others may own, separated by commas), or remove it",
        ),
    ],
)
def test_a_value_that_its_tool_does_not_know_is_refused_in_git_and_noted_live(key: str, value: str, seen: str, fix: str) -> None:
    (problem,) = asked({key: value}).problems
    assert (problem.message, problem.fix) == (f"{key}: {seen}", fix)
    noted = steering.note(live({key: value}))
    read_live = key not in ("kapp.k14s.io/update-strategy", "anneal.dev/recreate", "anneal.dev/ignore")
    assert noted.endswith("set live, means nothing to its tool") if read_live else noted == ""


@pytest.mark.parametrize(
    ("key", "near"), [("anneal.dev/prunee", "prune"), ("anneal.dev/recreated", "recreate"), ("anneal.dev/Ignore", "ignore")]
)
def test_an_annotation_that_was_probably_meant_for_us_is_refused(key: str, near: str) -> None:
    (problem,) = asked({key: "allow"}).problems
    assert (problem.message, problem.fix) == (f"{key} means nothing to Anneal", f"did you mean anneal.dev/{near}?")
    assert asked({"anneal.dev/identity": "shop:x", "anneal.dev/team": "a", "example.com/prunee": "b"}).problems == ()


@pytest.mark.parametrize(("part", "key"), [("annotations", "anneal.dev/rollout"), ("labels", "anneal.dev/canary")])
def test_what_marks_a_rollouts_own_objects_is_refused_in_git(part: str, key: str) -> None:
    (problem,) = asked({key: "x"}, part).problems
    assert (problem.place, problem.fix) == ("web.yaml:1", "remove it from git")
    assert f"metadata.{part} holds {key}, " in problem.message


def test_all_refused_annotations_are_told_together_with_their_places() -> None:
    marks = [{f"{FLUX}/ssa": "Ignor"}, {"kluctl.io/delete": "true", "kapp.k14s.io/nonce": ""}]
    bodies = [document(name=f"c{number}", metadata={"annotations": each}) for number, each in enumerate(marks)]
    with pytest.raises(PlanRefused) as caught:
        desired(*bodies, document("Unheard", "x"))
    assert [problem.place for problem in caught.value.problems] == ["0.yaml:1", "1.yaml:1", "1.yaml:1", "2.yaml:1"]


# --- whose word it is
def test_a_live_annotation_that_only_we_applied_doesnt_count() -> None:
    marks = {f"{FLUX}/reconcile": "disabled"}
    assert steering.left_alone(live(marks)) == f"{FLUX}/reconcile: disabled, set live"
    assert steering.left_alone(live(marks, "anneal")) == ""
    both = live(marks, "anneal")
    both["metadata"]["managedFields"].append(entry(fields_of({"metadata": {"annotations": marks}}), "kubectl-annotate"))
    assert steering.left_alone(both) != ""
    assert steering.left_alone(member(document())) == ""


# --- admission
def test_what_the_cluster_writes_in_each_namespace_is_left_and_its_account_is_applied() -> None:
    data = {"ca.crt": "ours"}
    root, other, account = desired(document(name="kube-root-ca.crt", data=data), document(), document("ServiceAccount", "default"))
    assert (root.mode, root.reason) == (Mode.LEAVE, "the cluster writes it into every namespace")
    assert (other.mode, account.mode) == (Mode.APPLY, Mode.APPLY)


def test_an_object_that_needs_one_with_ssa_ignore_doesnt_wait_for_it() -> None:
    left = {"annotations": {f"{FLUX}/ssa": "Ignore"}}
    room = document("Namespace", "shop", metadata=left)
    _, inside = desired(room, document(), cluster_scoped=("Namespace",))
    assert inside.needs == ()


def test_a_crd_with_ssa_ignore_brings_no_kind() -> None:
    names = {"kind": "Offer", "plural": "offers"}
    spec = {"group": "x.example.com", "scope": "Namespaced", "names": names, "versions": [{"name": "v1", "served": True}]}
    left = {"annotations": {f"{FLUX}/ssa": "Ignore"}}
    crd = document("CustomResourceDefinition", "offers.x.example.com", "apiextensions.k8s.io/v1", metadata=left, spec=spec)
    with pytest.raises(PlanRefused, match=r"doesn't serve x\.example\.com/v1 Offer"):
        desired(crd, document("Offer", "o", "x.example.com/v1"), cluster_scoped=("CustomResourceDefinition",))


def test_an_object_with_ssa_ignore_keeps_to_the_namespace_whitelist_if_its_kind_is_served() -> None:
    left = {"annotations": {f"{FLUX}/ssa": "Ignore"}}
    body = document("Kptfile", "shop", "kpt.dev/v1", metadata=left)
    (item,) = admission().admit([Manifest.of(body, "Kptfile:1")])
    assert (item.mode, item.resource.plural, item.reason) == (Mode.LEAVE, "", f"{FLUX}/ssa: Ignore, set in git")
    with pytest.raises(PlanRefused, match="namespace bank is not in the target's whitelist"):
        desired(document(metadata={**left, "namespace": "bank"}))


def test_a_hook_with_ssa_ignore_is_no_hook() -> None:
    marks = {"argocd.argoproj.io/hook": "PreSync", f"{FLUX}/ssa": "Ignore"}
    rest, hooked = separate(desired(document(metadata={"annotations": marks})))
    assert ([item.mode for item in rest], hooked.hooks) == ([Mode.LEAVE], {})


# --- the page
def told(row: AnnotationRow) -> tuple[str, str, str, str]:
    """Return a row as the page has it."""
    values = [value for value in row.values if row.values != ("true", "t", "1") or value == "true"]
    shown = ", ".join(f"`{value.replace(ANY, '…')}`" for value in values if value != ANY)
    key = f"`{row.key.replace(ANY, '…')}`"
    name, verdict = f"{key}: {shown}" if shown else key, f"{WORDS.get(row.effect, 'honoured')}: {row.does}"
    return name, row.tool.name, SIDES[row.side], verdict


def test_the_documented_table_of_annotations_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| (`.+?) \| (.+?) \| (git|live|both) \| ((?:honoured|refused|ignored): .+?) \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == [told(row) for row in TABLE]


@pytest.mark.parametrize("kind", ["Namespace", "PersistentVolumeClaim", "StatefulSet", "ConfigMap"])
@pytest.mark.parametrize(
    ("key", "value"),
    [("argocd.argoproj.io/sync-options", "Force=true,Replace=true"), ("kapp.k14s.io/nonce", "1"), ("kluctl.io/delete", "true")],
)
def test_no_fix_for_a_refused_annotation_deletes_an_object_that_holds_data(kind: str, key: str, value: str) -> None:
    declared = Manifest.of(
        document(kind, api="apps/v1" if kind == "StatefulSet" else "v1", metadata={"annotations": {key: value}}), "web.yaml:1"
    )
    (problem,) = steering.asked(declared, declared.body()).problems
    assert (problem.fix == DROP) is (kind != "ConfigMap")


@pytest.mark.parametrize(("kind", "api"), [("Job", "batch/v1"), ("Deployment", "apps/v1")])
def test_only_what_runs_to_its_own_end_is_told_to_become_a_hook(kind: str, api: str) -> None:
    declared = Manifest.of(document(kind, api=api, metadata={"annotations": {"kapp.k14s.io/nonce": "1"}}), "web.yaml:1")
    (problem,) = steering.asked(declared, declared.body()).problems
    assert ("argocd.argoproj.io/hook" in problem.fix) is (kind == "Job")
