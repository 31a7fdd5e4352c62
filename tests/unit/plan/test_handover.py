"""What becomes of an object between two targets of one repository, decided without a cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.model.errors import RenderFailed
from handler.model.manifest import Manifest
from handler.model.names import IDENTITY, PART_OF, Identity, Resource
from handler.model.plan import Action, Change
from handler.plan.admission import Desired
from handler.plan.handover import (
    Declared,
    FoundRecord,
    StandingCommit,
    kept_for,
    left_off_head,
    marks_taken_from,
    may_declare,
    named_for,
    refused,
    refused_to_namesake,
    refused_to_strangers,
    taken_from,
)
from handler.plan.prune import needs_asking

B = Target("b", Repository("https://git.example.com/acme/shop.git"), ("shop",), cluster_scoped=("Namespace", "ClusterRole"))
X = Identity("apps", "Deployment", "shop", "x")
BODY = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "namespace": "shop"}}
ITEM = Desired(Manifest.of(BODY, "b/x.yaml:1"), Resource("apps", "v1", "Deployment", "deployments", namespaced=True))
LIVE = {**BODY, "metadata": {"name": "x", "namespace": "shop", "uid": "u", "resourceVersion": "1"}}
HEAD, OLD = "a" * 40, "b" * 40
DECLARES = Declared("c", StandingCommit(HEAD), {X: "c/x.yaml:3"})
NOTHING = Declared("c", StandingCommit(HEAD))
BROKEN = Declared("d", StandingCommit(HEAD), failure=RenderFailed.of("d", "crashed"))


@pytest.mark.parametrize(
    ("identity", "allowed"),
    [
        (X, True),
        (Identity("apps", "Deployment", "other", "x"), False),
        (Identity("", "Namespace", "", "shop"), True),
        (Identity("", "Namespace", "", "other"), False),
        (Identity("rbac.authorization.k8s.io", "ClusterRole", "", "any"), True),
        (Identity("", "PersistentVolume", "", "any"), False),
    ],
    ids=str,
)
def test_only_what_its_whitelists_allow_may_be_a_targets(identity: Identity, allowed: bool) -> None:
    assert may_declare(B, identity) is allowed


def test_a_giver_leaves_what_a_sibling_declares_or_may_declare() -> None:
    assert kept_for(X, [NOTHING]) == ("", "")
    assert kept_for(X, [BROKEN, DECLARES]) == ("c", "hand over to c")
    assert kept_for(X, [NOTHING, BROKEN]) == ("d", f"target d may declare it and can't be rendered at {HEAD[:12]}: d: crashed")


def test_a_sibling_that_is_off_the_head_is_told_with_the_way_back() -> None:
    pinned = Declared("c", StandingCommit(HEAD, "is pinned to bbb", "`anneal unpin c`"), {X: "c/x.yaml:3"})
    assert kept_for(X, [pinned]) == ("c", "hand over to c, which is pinned to bbb; `anneal unpin c` ends that")


def test_a_namespace_stays_for_what_a_sibling_declares_in_it() -> None:
    assert kept_for(Identity("", "Namespace", "", "shop"), [DECLARES]) == ("c", "target c declares Deployment/shop/x in it")


def test_a_siblings_hook_object_is_kept_from_prune_and_not_taken_over() -> None:
    """An act's object is deleted before each of its runs; but what another's run still follows isn't ours to take."""
    job = Identity("batch", "Job", "shop", "x")
    hook = Declared("c", StandingCommit(HEAD), hooks={X: "c/x.yaml:3", job: "c/j.yaml:1"})
    sibling, reason = kept_for(X, [hook])
    assert (sibling, reason.partition(":")[0]) == ("c", "target c declares it as a hook at c/x.yaml")
    assert "give the hook another name" in reason
    assert kept_for(job, [hook]) == ("", "")
    assert refused(ITEM, hook)


def test_a_taker_is_refused_what_its_owner_declares_naming_both_files() -> None:
    problem = refused(ITEM, DECLARES)
    assert problem
    assert (problem.place, problem.message) == ("b/x.yaml:1", "belongs to target c, which declares it, too, at c/x.yaml:3")
    assert refused(ITEM, NOTHING) is None


def test_a_pin_of_the_owner_is_named_as_the_reason() -> None:
    theirs = Declared("c", StandingCommit(OLD, f"is pinned to {OLD[:12]}", "`anneal unpin c`"), {X: "c/x.yaml:3"})
    problem = refused(ITEM, theirs)
    assert problem
    assert problem.fix == "`anneal unpin c` lets go of it"
    assert left_off_head(ITEM, LIVE, theirs, OLD) is None, "both are off the head"


def test_an_object_handed_over_since_is_left_by_a_pinned_target() -> None:
    left = left_off_head(ITEM, LIVE, DECLARES, OLD)
    assert left
    assert (left.action, left.sibling) == (Action.SKIP, "c")
    assert left.reason == f"belongs to target c, which declares it at c/x.yaml:3 of the head; this target is at {OLD[:12]}"
    assert left_off_head(ITEM, LIVE, NOTHING, OLD) is None


def test_a_taker_takes_nothing_from_who_cannot_be_rendered() -> None:
    problem = refused(ITEM, BROKEN)
    assert problem
    assert "can't be rendered" in problem.message


def test_the_commands_name_kind_group_namespace_and_name() -> None:
    fix = refused_to_strangers(ITEM, "c", "b", known=True).fix
    assert "`kubectl label Deployment.apps/x -n shop applyset.kubernetes.io/part-of-`" in fix
    assert fix.index("anneal suspend c") < fix.index("kubectl label") < fix.index("anneal apply b") < fix.index("anneal resume c")


def test_a_renamed_target_is_told_to_be_called_as_before_and_nothing_is_taken_out_of_git() -> None:
    problem = refused_to_strangers(ITEM, "c", "b", known=False)
    assert problem.message == "belongs to target c, which this configuration doesn't know"
    renamed, gone, elsewhere = problem.fix.split("; ")
    assert renamed == "if it was renamed, call it c again"
    assert "kubectl label Deployment.apps/x" in gone
    assert "suspend" not in gone
    assert "take it out" in elsewhere
    assert "`anneal -c THEIR_FILE suspend c`" in elsewhere


RECORD = FoundRecord("c", "anneal-system", "", ours=True)


def test_a_renamed_target_is_named_with_its_record_and_the_line_that_takes_it_over() -> None:
    problem = refused_to_strangers(ITEM, "c", "b", RECORD, known=False)
    assert problem.message == "belongs to target c, which isn't configured any more; its record is ConfigMap/anneal-system/anneal-c"
    assert problem.fix.startswith("if it was renamed, write `renamedFrom: c` on target b; if it is gone, `anneal retire c --keep` lets go")
    moved = refused_to_strangers(ITEM, "c", "b", replace(RECORD, namespace="gitops", elsewhere=True), known=False).fix
    assert "`stateNamespaceFrom: gitops` beside `stateNamespace`" in moved
    assert "`anneal retire c --prune --state-namespace gitops`" in moved


def test_an_instance_of_a_template_that_is_gone_is_named_with_what_ends_all_of_them() -> None:
    record = replace(RECORD, target="grafana.shop.main")
    problem = refused_to_strangers(ITEM, record.target, "store.shop.main", record, known=False)
    prunes, keeps, takes = problem.fix.split("; ")
    assert prunes.startswith("`anneal retire grafana --prune` deletes what its instances had and is declared no more")
    assert keeps.startswith("`anneal retire grafana --keep` lets go of all")
    assert takes == "then `trigger: {resource: {adoptUnowned: true}}` on target store takes over what it declares"
    assert "adoptUnowned" not in refused_to_strangers(ITEM, record.target, "b", record, known=False).fix
    assert "renamedFrom" not in problem.fix
    known = refused_to_strangers(ITEM, record.target, "b", record, known=True).message
    assert known == "belongs to target grafana.shop.main, an instance of grafana"


@pytest.mark.parametrize("owner", ["c", "grafana.shop.main"])
def test_for_what_another_configuration_may_have_no_command_that_deletes_is_named(owner: str) -> None:
    fix = refused_to_strangers(ITEM, owner, "b", replace(RECORD, target=owner, shared=True), known=False).fix
    assert (fix.count("--prune"), fix.count("--prune --dry-run")) == (1, 1)


def test_another_record_of_the_same_target_is_named() -> None:
    problem = refused_to_strangers(ITEM, "b", "b", FoundRecord("b", "gitops", "", ours=True, elsewhere=True), known=False)
    assert problem.message == "belongs to another record of this target, ConfigMap/gitops/anneal-b"
    assert "stateNamespaceFrom: gitops" in problem.fix
    assert "`anneal retire b --keep --state-namespace gitops`" in problem.fix


def test_another_installation_or_repository_is_named_with_its_record() -> None:
    problem = refused_to_strangers(ITEM, "c", "b", FoundRecord("c", "theirs", "second"), known=False)
    assert problem.message == "belongs to target c of installation second, whose record is ConfigMap/theirs/anneal-c"
    steps = ("`anneal -c THEIR_FILE suspend c`", "kubectl label", "`anneal apply b`", "`anneal -c THEIR_FILE resume c`")
    assert sorted(steps, key=problem.fix.index) == list(steps)
    assert "`anneal suspend" not in problem.fix  # that would be completed with the flags of this configuration
    repository = refused_to_strangers(ITEM, "c", "b", FoundRecord("c", "anneal-system", ""), known=False)
    assert repository.message == "belongs to target c of another repository, whose record is ConfigMap/anneal-system/anneal-c"
    assert "retire" not in problem.fix + repository.fix


def test_a_namesake_whose_record_isnt_seen_is_another_installations() -> None:
    problem = refused_to_namesake(ITEM, "b")
    assert problem.message.startswith("carries the name of target b, and another ApplySet's label")
    assert problem.fix == "if another installation has it, call one of the two targets otherwise"


def test_a_hand_over_without_changes_is_an_update() -> None:
    change = taken_from("c", Change(Action.UNCHANGED, X, "u", "1"))
    assert (change.action, change.sibling, change.reason) == (Action.UPDATE, "c", "taken over from c")
    again = taken_from("c", Change(Action.RECREATE, X, "u", "1", "an immutable field changed"))
    assert (again.action, again.reason) == (Action.RECREATE, "taken over from c; an immutable field changed")


@pytest.mark.parametrize(
    ("kind", "annotations", "known", "asked"),
    [
        ("ConfigMap", {}, (), True),
        ("ConfigMap", {}, ("u",), True),
        ("ConfigMap", {"anneal.dev/prune": "disabled"}, (), False),
        ("PersistentVolumeClaim", {}, (), True),
        ("PersistentVolumeClaim", {}, ("u",), False),
    ],
)
def test_siblings_are_asked_of_what_would_go_and_once_of_what_its_kind_keeps(
    kind: str, annotations: dict[str, str], known: tuple[str, ...], asked: bool
) -> None:
    live = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": "shop", "uid": "u", "annotations": annotations}}
    assert needs_asking(live, B, known) is asked


@pytest.mark.parametrize("metadata", [{"name": "x", "namespace": "shop"}, {"name": "x"}])
def test_only_the_marks_of_what_its_taker_leaves_as_it_lives_are_written(metadata: dict[str, str]) -> None:
    marks = {"labels": {PART_OF: "applyset-b-v1"}, "annotations": {IDENTITY: "b:apps/Deployment:shop/x"}}
    more = {"labels": {**marks["labels"], "app": "x"}, "annotations": {**marks["annotations"], "team": "tea"}}
    declared = Manifest.of({**BODY, "metadata": {**metadata, **more}, "spec": {"replicas": 2}}, "b/x.yaml:1")
    taken = marks_taken_from("a", Change(Action.UNCHANGED, X, "u", "1"), replace(ITEM, manifest=declared))
    assert (taken.action, taken.marks_only, taken.sibling) == (Action.UPDATE, True, "a")
    assert taken.reason == "taken over from a; its content stays as it is"
    assert taken.manifest is not None
    assert (taken.manifest.body(), taken.manifest.place) == ({**BODY, "metadata": {**metadata, **marks}}, "b/x.yaml:1")


def test_what_a_sibling_names_though_it_does_not_declare_it() -> None:
    user = Identity("autoscaling", "HorizontalPodAutoscaler", "shop", "user")
    names = replace(NOTHING, names={(X.kind, X.namespace, X.name): user})
    assert named_for(X, [NOTHING, BROKEN, names]) == "HorizontalPodAutoscaler/shop/user of target c names it"
    assert named_for(replace(X, name="other"), [names]) == ""
