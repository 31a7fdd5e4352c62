"""Whether one live object may be deleted: every check only ever keeps it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.config.settings import Prune, Target
from handler.model.names import Identity, Resource, identity_of
from handler.model.plan import Action, Change
from handler.plan.prune import ALLOW, PROTECTIONS, PruneFacts, custom_kinds, is_outside, judge, leaving, left_to, protection, questions
from handler.plan.system_objects import MADE_AGAIN
from tests.unit.plan.samples import document, instance, member, target
from tests.unit.rows import each_row

CRD_API = "apiextensions.k8s.io/v1"
OPEN = target(
    cluster_scoped=("Namespace", "CustomResourceDefinition", "PersistentVolume", "ClusterRole.rbac.authorization.k8s.io"),
    prune=Prune(kinds=("Namespace", "CustomResourceDefinition", "PersistentVolume", "PersistentVolumeClaim")),
)
KNOWN = PruneFacts({"shop": ()}, {"widgets.acme.io": 0})


def scoped(kind: str, name: str, api: str = "v1", **metadata: Any) -> dict[str, Any]:
    return member(document(kind, name, api), namespace="", **metadata)


NAMESPACE = scoped("Namespace", "shop")
CRD = scoped("CustomResourceDefinition", "widgets.acme.io", CRD_API)


def judged(live: dict[str, Any], allowed: Target = OPEN, facts: PruneFacts = KNOWN, declared: tuple[Identity, ...] = ()) -> Change:
    return judge(live, allowed, declared, facts)


def test_what_is_ours_and_no_longer_declared_goes_under_its_own_uid_and_version() -> None:
    change = judged(member(document(), finalizers=["acme.io/clean"]))
    assert change == Change(
        Action.PRUNE, Identity("", "ConfigMap", "shop", "web"), "uid-web", "7", "no longer declared", finalizers=("acme.io/clean",)
    )


OWN = {"apiVersion": "acme.io/v1", "kind": "Shop", "name": "main", "uid": "uid-main"}


@pytest.mark.parametrize(
    ("references", "reason"),
    [
        ([OWN], "no longer declared"),
        ([OWN | {"uid": "uid-of-before"}], "no longer declared"),
        ([OWN | {"name": "other"}], "owned by Shop other"),
        ([OWN, OWN | {"name": "other"}], "owned by Shop main"),
    ],
)
def test_what_the_own_object_of_an_instance_owns_is_pruned_and_what_others_own_stays(references: list[dict[str, Any]], reason: str) -> None:
    change = judged(member(document(), ownerReferences=references), instance(namespace="shop"))
    assert change.reason == reason
    assert change.removes == (reason == "no longer declared")
    assert judged(member(document(), ownerReferences=references)).action is Action.SKIP


def test_what_is_left_to_a_sibling_is_skipped_naming_it() -> None:
    change = left_to(member(document()), "bank", "hand over to bank")
    assert change == Change(Action.SKIP, Identity("", "ConfigMap", "shop", "web"), "uid-web", "7", "hand over to bank", sibling="bank")


def test_what_is_being_deleted_already_still_counts_and_is_waited_for() -> None:
    change = judged(member(document(), deletionTimestamp="2026-03-01T12:00:00Z"))
    assert (change.action, change.reason) == (Action.PRUNE, "is being deleted already")


@pytest.mark.parametrize(
    "live", [NAMESPACE, CRD, scoped("ClusterRole", "r", "rbac.authorization.k8s.io/v1"), scoped("PersistentVolume", "v")]
)
def test_a_kind_named_in_prune_kinds_is_pruned(live: dict[str, Any]) -> None:
    assert judged(live).action is Action.PRUNE


@pytest.mark.parametrize("kind", ["Namespace", "PersistentVolumeClaim"])
def test_an_annotation_opts_one_object_in(kind: str) -> None:
    live = member(document(kind, "shop"), annotations={ALLOW: "allow"}, **({"namespace": ""} if kind == "Namespace" else {}))
    allowed = target(cluster_scoped=("Namespace",))
    assert judged(live, allowed).action is Action.PRUNE
    assert "is kept: prune.kinds" in judged(member(document(kind, "shop")), allowed).reason


@pytest.mark.parametrize(
    ("live", "allowed", "reason"),
    [
        (member(document(), namespace="bank"), OPEN, "outside: namespace bank left the whitelist; it stays tracked"),
        (scoped("Namespace", "bank"), OPEN, "outside: namespace bank left the whitelist; it stays tracked"),
        (NAMESPACE, target(), "outside: Namespace left clusterScoped; it stays tracked"),
        (
            CRD,
            target(cluster_scoped=("CustomResourceDefinition.acme.io",)),
            "outside: CustomResourceDefinition.apiextensions.k8s.io left clusterScoped; it stays tracked",
        ),
        (member(document(), ownerReferences=[{"kind": "Shop", "name": "main"}]), OPEN, "owned by Shop main"),
        (member(document("ServiceAccount", name="default")), OPEN, MADE_AGAIN),
        (member(document(name="kube-root-ca.crt")), OPEN, MADE_AGAIN),
        (scoped("Namespace", "kube-system"), target(namespaces=("*",), cluster_scoped=("Namespace",)), "system namespace"),
        (scoped("Namespace", "default"), target(namespaces=("*",), cluster_scoped=("Namespace",)), "system namespace"),
        (
            scoped("Namespace", "default-apps"),
            target(namespaces=("*",), cluster_scoped=("Namespace",)),
            "Namespace is kept: prune.kinds of target shop doesn't name it",
        ),
        (
            member(document("PersistentVolumeClaim")),
            target(),
            "PersistentVolumeClaim is kept: prune.kinds of target shop doesn't name it",
        ),
        (
            CRD,
            target(cluster_scoped=("CustomResourceDefinition",)),
            "CustomResourceDefinition is kept: prune.kinds of target shop doesn't name it",
        ),
        (
            scoped("PersistentVolume", "v"),
            target(cluster_scoped=("PersistentVolume",)),
            "PersistentVolume is kept: prune.kinds of target shop doesn't name it",
        ),
    ],
)
def test_an_object_kept_from_prune_has_its_reason(live: dict[str, Any], allowed: Target, reason: str) -> None:
    change = judged(live, allowed)
    assert (change.action, change.reason) == (Action.SKIP, reason)
    assert is_outside(change.identity, allowed) == reason.startswith("outside: ")


def test_what_prune_would_keep_doesnt_go_with_its_owner_either() -> None:
    kept = {"helm.sh/resource-policy": "keep"}
    assert protection(member(document(), annotations=kept), OPEN) == "protected by helm.sh/resource-policy: keep"
    claim = member(document("PersistentVolumeClaim"))
    assert protection(claim, target()) == "PersistentVolumeClaim is kept: prune.kinds of target shop doesn't name it"
    assert protection(claim, OPEN) == protection(member(document(), ownerReferences=[OWN]), OPEN) == ""


@pytest.mark.parametrize(
    ("live", "facts", "declared", "reason"),
    [
        (NAMESPACE, PruneFacts(), (), "what it holds could not be read"),
        (NAMESPACE, PruneFacts({"other": ()}), (), "what it holds could not be read"),
        (
            NAMESPACE,
            PruneFacts(silent={"metrics.k8s.io", "backups.example.com"}),
            (),
            "what it holds could not be read: the API group backups.example.com doesn't answer; repair its APIService",
        ),
        (NAMESPACE, PruneFacts({"shop": tuple("abcd")}), (), "still holds a, b, c"),
        (NAMESPACE, KNOWN, (Identity("", "Secret", "shop", "s"),), "still holds declared Secret/shop/s"),
        (CRD, PruneFacts(), (), "its instances could not be counted"),
        (CRD, PruneFacts(instances={"widgets.acme.io": 2}), (), "still has instances (2); deleting it would delete them"),
    ],
)
def test_namespaces_and_crds_with_content_are_kept_from_prune(
    live: dict[str, Any], facts: PruneFacts, declared: tuple[Identity, ...], reason: str
) -> None:
    change = judged(live, OPEN, facts, declared)
    assert (change.action, change.reason) == (Action.SKIP, reason)


@each_row("place", ["annotations", "labels"])
@each_row(("name", "value"), [(name, value) for name, values in PROTECTIONS for value in sorted(values)])
def test_prune_protections_of_other_tools_count_in_any_case(name: str, value: str, place: str) -> None:
    for written in (value, value.title(), f"x=y, {value.upper()} ,z"):
        change = judged(member(document(), **{place: {name: written}}))
        assert change.action is Action.SKIP
        assert change.reason.lower() == f"protected by {name}: {value}".lower()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("anneal.dev/prune", "disabled"),
        ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
        ("kustomize.toolkit.fluxcd.io/reconcile", "disabled"),
        ("kustomize.toolkit.fluxcd.io/ssa", "Ignore"),
        ("argocd.argoproj.io/sync-options", "ServerSideApply=true,Prune=false"),
        ("argocd.argoproj.io/sync-options", "Prune=confirm"),
        ("argocd.argoproj.io/sync-options", "Delete=false"),
        ("helm.sh/resource-policy", "keep"),
        ("cli-utils.sigs.k8s.io/on-remove", "keep"),
        ("client.lifecycle.config.k8s.io/deletion", "detach"),
        ("kapp.k14s.io/delete-strategy", "orphan"),
        ("kluctl.io/skip-delete", "true"),
    ],
)
def test_prune_protections_of_other_tools_are_known(name: str, value: str) -> None:
    assert judged(member(document(), annotations={name: value})).reason.startswith(f"protected by {name}: ")


@pytest.mark.parametrize(
    ("name", "value"),
    [("argocd.argoproj.io/sync-options", "Prune=true"), ("helm.sh/resource-policy", "keeper"), ("anneal.dev/prune", "allow")],
)
def test_other_values_of_protection_annotations_dont_stop_prune(name: str, value: str) -> None:
    assert judged(member(document(), annotations={name: value})).action is Action.PRUNE


def test_only_namespaces_and_crds_without_another_protection_cost_a_prune_check() -> None:
    kept = scoped("Namespace", "shop", annotations={ALLOW: "disabled"})
    outside = scoped("Namespace", "bank")
    assert questions([NAMESPACE, CRD, kept, outside, member(document())], OPEN) == (["shop"], [identity_of(CRD)])
    assert questions([NAMESPACE, CRD], target()) == ([], [])


def test_an_object_kept_from_prune_keeps_its_namespace() -> None:
    goes, stays = member(document(name="goes")), member(document("PersistentVolumeClaim", "stays"))
    marked = member(document(name="marked"), annotations={ALLOW: "disabled"})
    assert leaving([goes, stays, marked], target()) == {"uid-goes"}


def test_the_kinds_of_a_crd_are_found_by_its_name() -> None:
    widget, gadget = Resource("acme.io", "v1", "Widget", "widgets", True), Resource("acme.io", "v1", "Gadget", "gadgets", True)
    assert custom_kinds([widget, gadget], identity_of(CRD)) == [widget]


names = st.sampled_from(["shop", "bank", "default", "kube-system", "widgets.acme.io"])
kinds = st.sampled_from([("ConfigMap", "v1"), ("Namespace", "v1"), ("PersistentVolumeClaim", "v1"), ("CustomResourceDefinition", CRD_API)])
optional = {
    "ownerReferences": st.just([{"kind": "Shop", "name": "main"}]),
    "deletionTimestamp": st.just("2026-03-01T12:00:00Z"),
    "labels": st.dictionaries(st.sampled_from([name for name, _ in PROTECTIONS]), st.sampled_from(["disabled", "keep", "x"]), max_size=1),
    "annotations": st.dictionaries(st.sampled_from([ALLOW, "helm.sh/resource-policy"]), st.sampled_from(["allow", "disabled", "keep"])),
}
facts = st.builds(PruneFacts, st.dictionaries(names, st.sampled_from([(), ("x",)])), st.dictionaries(names, st.integers(0, 2)))
targets = st.builds(
    target,
    namespaces=st.sampled_from([("shop",), ("*",)]),
    cluster_scoped=st.sampled_from([(), ("Namespace",), ("CustomResourceDefinition",)]),
    prune=st.builds(Prune, kinds=st.sampled_from([(), OPEN.prune.kinds])),
)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(kinds, names, names, st.fixed_dictionaries({}, optional=optional), facts, targets, st.booleans())
def test_no_object_is_pruned_against_any_check(
    kind: tuple[str, str], name: str, namespace: str, metadata: dict[str, Any], known: PruneFacts, allowed: Target, inhabited: bool
) -> None:
    cluster_wide = kind[0] in ("Namespace", "CustomResourceDefinition")
    live = member(document(kind[0], name, kind[1]), namespace="" if cluster_wide else namespace, **metadata)
    declared = (Identity("", "Secret", name, "s"),) if inhabited else ()
    if judge(live, allowed, declared, known).action is not Action.PRUNE:
        return
    marks = live["metadata"]["annotations"]
    opted_in = kind[0] in allowed.prune.kinds or marks.get(ALLOW) == "allow"
    assert cluster_wide or "*" in allowed.namespaces or namespace in allowed.namespaces
    assert not cluster_wide or kind[0] in allowed.cluster_scoped
    assert "ownerReferences" not in metadata
    assert marks.get(ALLOW) != "disabled"
    assert marks.get("helm.sh/resource-policy") != "keep"
    assert kind[0] == "ConfigMap" or opted_in
    if kind[0] == "Namespace":
        assert "*" in allowed.namespaces or name in allowed.namespaces
        assert name not in ("default", "kube-system")
        assert known.content[name] == ()
        assert not inhabited
    if kind[0] == "CustomResourceDefinition":
        assert known.instances[name] == 0
