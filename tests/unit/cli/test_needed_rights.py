"""Which rights follow from a target's settings, kinds and documents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handler.cli.needed_rights import (
    RBAC,
    WRITES,
    Grant,
    NeededKinds,
    documents,
    own_grants,
    page_grants,
    promoter_reads,
    secret_reads,
    target_grants,
    value_reads,
    wanted_grants,
)
from handler.cli.rbac import HOME, _at_home
from handler.config.git_settings import BasicAuth, Promoted, Repository, RepositoryAuth, Revision, SecretRef, WebhookSecrets
from handler.config.post_build import PostBuild, SubstituteFrom
from handler.config.renderer_settings import RendererSettings, ValuesFrom
from handler.config.settings import Cluster, Eks, EvidenceSettings, Impersonate, Prune, Rollback, Settings, Target, Wait, WebhookSettings
from handler.model.names import Resource
from tests.unit.rows import each_row

TARGET = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop", "jobs"))
SETTINGS = Settings((TARGET,))
CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
CUPS = Resource("example.com", "v1", "Cup", "cups", namespaced=True)


def body(kind: str, name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, **more}


def test_namespaced_kinds_are_granted_in_each_allowed_namespace_and_others_cluster_wide() -> None:
    assert target_grants(TARGET, NeededKinds((CONFIGMAPS, NAMESPACES), TARGET.namespaces)) == (
        Grant("", "", "namespaces", WRITES),
        Grant("jobs", "", "configmaps", WRITES),
        Grant("shop", "", "configmaps", WRITES),
    )


@each_row(("policy", "verbs"), [("Retain", ("list",)), ("Delete", ("list", "patch"))])
def test_a_target_with_statefulsets_may_list_claims_and_let_go_those_that_would_go_with_them(policy: str, verbs: tuple[str, ...]) -> None:
    sets = Resource("apps", "v1", "StatefulSet", "statefulsets", namespaced=True)
    declared = body("StatefulSet", "db", "shop", spec={"persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy}})
    needed = NeededKinds((sets,), ("shop",), (declared,))
    assert target_grants(TARGET, needed)[0] == Grant("shop", "", "persistentvolumeclaims", verbs)
    opened = target_grants(replace(TARGET, prune=Prune(kinds=("PersistentVolumeClaim",))), needed)
    assert opened[:2] == (Grant("", "", "persistentvolumes", ("get",)), Grant("shop", "", "persistentvolumeclaims", ("get", *verbs)))


def test_a_target_whose_scale_downs_delete_claims_may_look_for_their_pods() -> None:
    sets = Resource("apps", "v1", "StatefulSet", "statefulsets", namespaced=True)
    declared = body("StatefulSet", "db", "shop", spec={"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}})
    assert Grant("shop", "", "pods", ("get",)) in target_grants(TARGET, NeededKinds((sets,), ("shop",), (declared,)))


@each_row("goes_back", [True, False])
def test_pods_that_stay_at_a_failed_revision_may_be_deleted_only_where_a_target_goes_back_by_itself(goes_back: bool) -> None:
    sets = Resource("apps", "v1", "StatefulSet", "statefulsets", namespaced=True)
    target = replace(TARGET, wait=Wait(), rollback=Rollback(on_failure=goes_back))
    assert (Grant("shop", "", "pods", ("delete", "get", "list")) in target_grants(target, NeededKinds((sets,), ("shop",)))) is goes_back
    assert not any(grant.resource == "pods" for grant in target_grants(target, NeededKinds((CONFIGMAPS,), ("shop",))))


def test_a_target_that_may_use_every_namespace_needs_a_cluster_role() -> None:
    assert target_grants(TARGET, NeededKinds((CONFIGMAPS,), ("*",))) == (Grant("", "", "configmaps", WRITES),)


def test_a_target_with_wait_may_read_pods_and_events() -> None:
    deployments = Resource("apps", "v1", "Deployment", "deployments", namespaced=True)
    waiting, needed = replace(TARGET, wait=Wait()), NeededKinds((deployments, CONFIGMAPS), ("shop",))
    reads = (
        Grant("shop", "", "events", ("list",)),
        Grant("shop", "", "pods", ("get", "list")),
    )
    assert wanted_grants(waiting, needed) == reads
    assert wanted_grants(TARGET, needed) == reads, "its health is watched though no run waits for it"
    assert wanted_grants(waiting, NeededKinds((CUPS,), ("*",))) == (Grant("", "", "events", ("list",)),)
    assert wanted_grants(waiting, NeededKinds((CONFIGMAPS,), ("*",))) == (), "it can't be anything but healthy"


def test_rights_for_recorded_logs_include_the_mounted_secrets_by_name() -> None:
    deployments = Resource("apps", "v1", "Deployment", "deployments", namespaced=True)
    recording = replace(TARGET, wait=Wait(), evidence=EvidenceSettings("record"))
    volumes = [
        {"name": "a", "secret": {"secretName": "files"}},
        {"name": "b", "projected": {"sources": [{"secret": {"name": "projected"}}, {"configMap": {"name": "open"}}]}},
        {"name": "c", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "driver"}}},
    ]
    one = {"env": [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "variable", "key": "k"}}}]}
    first = {"envFrom": [{"secretRef": {"name": "variables"}}, {"configMapRef": {"name": "open"}}]}
    pod = {"volumes": volumes, "containers": [one], "initContainers": [first], "imagePullSecrets": [{"name": "registry"}]}
    web = body("Deployment", "web", "shop", apiVersion="apps/v1", spec={"template": {"spec": pod}})
    other = body("Certificate", "web", "shop", apiVersion="cert-manager.io/v1", spec={"secretName": "tls"})
    needed = NeededKinds((deployments,), ("shop", "jobs"), (web, other))
    named = ("driver", "files", "projected", "variable", "variables")
    found = wanted_grants(recording, needed)
    assert [grant for grant in found if grant.resource in ("pods/log", "secrets")] == [
        Grant("jobs", "", "pods/log", ("get",)),
        Grant("shop", "", "pods/log", ("get",)),
        Grant("shop", "", "secrets", ("get",), named),
    ]
    assert Grant("", "", "secrets", ("get",), named) in wanted_grants(recording, replace(needed, namespaces=("*",)))
    assert not any(grant.resource in ("pods/log", "secrets") for grant in wanted_grants(replace(TARGET, wait=Wait()), needed))


def test_prune_of_namespaces_and_crds_needs_list_rights_on_their_content() -> None:
    target = replace(TARGET, prune=Prune(kinds=("Namespace", "CustomResourceDefinition")))
    needed = NeededKinds((NAMESPACES, CRDS, CUPS), ("shop",), (body("CustomResourceDefinition", "cups.example.com"),))
    found = target_grants(target, needed)
    assert Grant("shop", "*", "*", ("list",)) in found
    assert Grant("", "example.com", "cups", ("list",)) in found


def test_an_exclusive_namespace_needs_rights_on_every_kind_that_may_be_undeclared_there() -> None:
    target = replace(TARGET, exclusive=("shop",))
    found = target_grants(target, NeededKinds((CONFIGMAPS,), ("shop", "jobs"), undeclared=(CONFIGMAPS, CUPS)))
    assert Grant("shop", "example.com", "cups", ("delete", "get", "list", "watch")) in found
    assert [grant.verbs for grant in found if grant.resource == "configmaps"] == [WRITES, WRITES]
    assert not any(grant.resource == "cups" and grant.namespace == "jobs" for grant in found)
    issuers = Resource("example.com", "v1", "Issuer", "issuers", False, frozenset({"list"}))
    found = target_grants(target, NeededKinds((CONFIGMAPS,), ("shop",), undeclared=(issuers,)))
    assert [grant for grant in found if grant.resource == "issuers"] == [Grant("", "example.com", "issuers", ("list",))]


def test_roles_and_bindings_are_escalated_by_name_only() -> None:
    bodies = (
        body("Role", "reader", "shop"),
        body("RoleBinding", "reader", "shop", roleRef={"kind": "ClusterRole", "name": "view"}),
        body("ClusterRole", "lister"),
        body("ClusterRoleBinding", "lister", roleRef={"kind": "ClusterRole", "name": "lister"}),
    )
    assert set(target_grants(TARGET, NeededKinds((), ("shop",), bodies))) == {
        Grant("shop", RBAC, "roles", ("escalate",), ("reader",)),
        Grant("shop", RBAC, "clusterroles", ("bind",), ("view",)),
        Grant("", RBAC, "clusterroles", ("escalate",), ("lister",)),
        Grant("", RBAC, "clusterroles", ("bind",), ("lister",)),
    }


def test_the_handler_reads_and_writes_only_its_own_record_by_name() -> None:
    named = {(grant.resource, grant.verbs, grant.names) for grant in own_grants(SETTINGS, TARGET)}
    assert ("configmaps", ("get", "update"), ("anneal-shop",)) in named
    assert ("leases", ("get", "update"), ("anneal-shop", "anneal-heartbeat.default")) in named
    assert not any(set(verbs) & {"delete", "patch"} for _, verbs, _ in named)
    assert [(resource, names) for resource, verbs, names in named if "list" in verbs] == [("configmaps", ())], "for overviews and surveys"


def test_records_of_targets_that_it_depends_on_are_read_on_its_cluster_alone() -> None:
    target = replace(TARGET, depends_on=("infra", "far"))
    far = replace(TARGET, name="far", cluster=Cluster(context="far"))
    settings = Settings((target, replace(TARGET, name="infra"), far, replace(TARGET, name="other")))
    read = [grant for grant in own_grants(settings, target) if grant.verbs == ("get",) and grant.resource == "configmaps"]
    assert read == [Grant("anneal-system", "", "configmaps", ("get",), ("anneal-infra",))]


def test_what_a_target_that_it_depends_on_follows_is_read_too() -> None:
    infra = replace(TARGET, name="infra", revision=Revision(promoted=Promoted(("base",))))
    target = replace(TARGET, depends_on=("infra",))
    settings = Settings((target, infra, replace(TARGET, name="base")))
    assert set(promoter_reads(settings, infra)) < set(own_grants(settings, target))


def test_secrets_that_the_configuration_refers_to_are_read_by_name() -> None:
    def held(name: str) -> SecretRef:
        return SecretRef(kubernetes_secret=f"anneal-system/{name}/value")

    repository = replace(TARGET.repository, auth=RepositoryAuth(basic=BasicAuth("anneal", held("git"))))
    other = replace(TARGET, name="other", repository=replace(repository, webhook=WebhookSecrets((held("another"),))))
    target = replace(TARGET, repository=repository)
    webhooks = WebhookSettings(github=WebhookSecrets((held("webhook"), SecretRef(file="/run/old"))))
    settings = Settings((target, other), webhooks=webhooks)

    def secrets(target: Target) -> list[Grant]:
        return [grant for grant in own_grants(settings, target) if grant.resource == "secrets"]

    assert secrets(target) == [Grant("anneal-system", "", "secrets", ("get",), ("git", "webhook"))]
    assert secrets(replace(target, cluster=Cluster(in_cluster=True))) == secrets(target)
    elsewhere = (Cluster(context="other"), Cluster(kubeconfig=SecretRef(file="/run/kubeconfig")), Cluster(eks=Eks("other")))
    assert [secrets(replace(target, cluster=cluster)) for cluster in elsewhere] == [[], [], []]
    assert [list(secret_reads(settings, replace(target, cluster=cluster))) for cluster in elsewhere] == [secrets(target)] * 3
    kept = replace(target, cluster=Cluster(kubeconfig=held("kubeconfig")))
    assert list(secret_reads(settings, kept)) == [Grant("anneal-system", "", "secrets", ("get",), ("git", "kubeconfig", "webhook"))]


def test_impersonation_is_of_one_account() -> None:
    target = replace(TARGET, impersonate=Impersonate("shop/deployer"))
    assert Grant("shop", "", "serviceaccounts", ("impersonate",), ("deployer",)) in own_grants(SETTINGS, target)


def test_rules_that_differ_in_their_resource_only_are_one() -> None:
    grants = (
        Grant("shop", "", "secrets", WRITES),
        Grant("shop", "", "configmaps", WRITES),
        Grant("", "", "namespaces", ("get",), ("kube-system",)),
    )
    found = documents("anneal-shop", grants, {"kind": "ServiceAccount", "name": "anneal", "namespace": "ops"})
    assert [one["kind"] for one in found] == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    assert found[0]["rules"] == [{"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]}]
    assert found[2]["rules"] == [{"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": list(WRITES)}]
    assert [found[place]["roleRef"]["kind"] for place in (1, 3)] == ["ClusterRole", "Role"]
    assert found[3]["roleRef"] == {"apiGroup": RBAC, "kind": "Role", "name": "anneal-shop"}
    assert found[1]["subjects"] == found[3]["subjects"] == [{"kind": "ServiceAccount", "name": "anneal", "namespace": "ops"}]
    assert (found[2]["metadata"], "namespace" in found[0]["metadata"]) == ({"name": "anneal-shop", "namespace": "shop"}, False)


@each_row("cluster", [Cluster(context="prod"), Cluster(eks=Eks("prod")), Cluster()])
def test_secrets_for_a_target_of_another_cluster_are_granted_at_home(cluster: Cluster) -> None:
    held = SecretRef(kubernetes_secret="anneal-system/webhook/value")
    settings = Settings((TARGET,), webhooks=WebhookSettings(github=WebhookSecrets((held,))))
    found = _at_home(settings, replace(TARGET, cluster=cluster), {"kind": "ServiceAccount", "name": "anneal", "namespace": "anneal-system"})
    if cluster == Cluster():
        assert found == []
        return
    role, binding = found
    assert role["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["webhook"], "verbs": ["get"]}]
    assert {each["metadata"]["name"] for each in found} == {"anneal-shop-secrets"}
    assert role["metadata"]["annotations"] == binding["metadata"]["annotations"] == HOME


def test_values_of_the_cluster_are_read_by_name_as_the_target() -> None:
    sources = (ValuesFrom("Secret", "db"), ValuesFrom("ConfigMap", "b", "x"), ValuesFrom("ConfigMap", "a"))
    target = replace(TARGET, namespace="shop", renderer=RendererSettings("helm", values_from=sources))
    reads = (Grant("shop", "", "configmaps", ("get",), ("a", "b")), Grant("shop", "", "secrets", ("get",), ("db",)))
    assert tuple(value_reads(target)) == reads
    assert target_grants(target, NeededKinds((), target.namespaces)) == reads
    assert not set(reads) & set(own_grants(SETTINGS, target)), "they are the target's, not the handler's"


def test_objects_that_hold_variables_are_read_by_name() -> None:
    found = PostBuild(
        substitute_from=(SubstituteFrom("Secret", "b"), SubstituteFrom("Secret", "a", True), SubstituteFrom("ConfigMap", "c"))
    )
    assert tuple(value_reads(replace(TARGET, namespace="shop", post_build=found))) == (
        Grant("shop", "", "configmaps", ("get",), ("c",)),
        Grant("shop", "", "secrets", ("get",), ("a", "b")),
    )


def test_the_page_reads_what_the_targets_kinds_own_their_events_and_logs() -> None:
    crons = Resource("batch", "v1", "CronJob", "cronjobs", namespaced=True)
    services = Resource("", "v1", "Service", "services", namespaced=True)
    template = {"containers": [{"envFrom": [{"secretRef": {"name": "db"}}]}]}
    cron = {
        **body("CronJob", "nightly", "shop"),
        "apiVersion": "batch/v1",
        "spec": {"jobTemplate": {"spec": {"template": {"spec": template}}}},
    }
    assert page_grants(NeededKinds((crons, services, CONFIGMAPS), ("shop",), (cron,))) == (
        Grant("shop", "", "events", ("list",)),
        Grant("shop", "", "pods", ("get", "list")),
        Grant("shop", "", "pods/log", ("get",)),
        Grant("shop", "", "secrets", ("get",), ("db",)),
        Grant("shop", "batch", "jobs", ("list",)),
        Grant("shop", "discovery.k8s.io", "endpointslices", ("list",)),
    )
    assert page_grants(NeededKinds((CONFIGMAPS,), ("*",))) == (Grant("", "", "events", ("list",)),)


def test_a_follower_reads_what_it_follows_by_name_and_nothing_of_another_cluster() -> None:
    staging = replace(TARGET, name="staging")
    follower = replace(TARGET, name="prod", revision=Revision(promoted=Promoted(("staging",))))
    settings = Settings(targets=(staging, follower), state_namespace="gitops", installation="blue")
    assert [*promoter_reads(settings, follower)] == [
        Grant("gitops", "", "configmaps", ("get",), ("anneal-staging",)),
        Grant("gitops", "coordination.k8s.io", "leases", ("get",), ("anneal-heartbeat.blue",)),
    ]
    assert set(promoter_reads(settings, follower)) <= set(own_grants(settings, follower))
    elsewhere = Promoted(("staging",), state_namespace="there", installation="green")
    found = promoter_reads(settings, replace(follower, revision=Revision(promoted=elsewhere)))
    assert [grant.namespace for grant in found] == ["there"] * 2
    other = replace(elsewhere, cluster=Cluster(context="there"))
    assert [*promoter_reads(settings, replace(follower, revision=Revision(promoted=other)))] == []
    assert [*promoter_reads(settings, staging)] == []
