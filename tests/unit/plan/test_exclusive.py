"""What lives in an exclusive namespace and isn't declared: whether it is an orphan, and until when it stays."""

from __future__ import annotations

from typing import Any

import pytest

from handler.config.settings import HoldAbove, Prune
from handler.model.names import IDENTITY, PART_OF, GroupKind, Identity, Resource, identity_of
from handler.model.plan import Action, Change
from handler.plan.exclusive import (
    SYSTEM,
    Sighting,
    account_of_token,
    held_strangers,
    is_looked_for,
    is_read_for_names,
    left_alone,
    may_own_data,
    own_rights,
    rights_of,
    said,
    taken_apart,
    unread,
    until,
)
from tests.unit.rows import each_row

ALL = frozenset({"list", "delete", "get"})
MAP = Identity("", "ConfigMap", "shop", "web")


def resource(group: str, kind: str, *, namespaced: bool = True, verbs: frozenset[str] = ALL) -> Resource:
    return Resource(group, "v1", kind, f"{kind.lower()}s", namespaced, verbs)


@each_row(
    ("kind", "expected"),
    [
        (resource("", "ConfigMap"), True),
        (resource("example.com", "Offer"), True),
        (resource("", "Node", namespaced=False), False),
        (resource("", "PodTemplate", verbs=frozenset({"list"})), False),
        (resource("", "Binding", verbs=frozenset({"create"})), False),
        (resource("", "Event"), False),
        (resource("events.k8s.io", "Event"), False),
        (resource("", "Endpoints"), False),
        (resource("discovery.k8s.io", "EndpointSlice"), False),
        (resource("coordination.k8s.io", "Lease"), False),
        (resource("apps", "ControllerRevision"), False),
        (resource("metrics.k8s.io", "PodMetrics"), False),
        (resource("custom.metrics.k8s.io", "MetricValueList"), False),
        (resource("external.metrics.k8s.io", "ExternalMetricValueList"), False),
        (resource("coordination.k8s.io", "LeaseCandidate"), False),
        (resource("certificates.k8s.io", "PodCertificateRequest"), False),
        (resource("storage.k8s.io", "CSIStorageCapacity"), False),
        (resource("wgpolicyk8s.io", "PolicyReport"), False),
        (resource("reports.kyverno.io", "EphemeralReport"), False),
        (resource("image.openshift.io", "ImageStreamTag"), False),
        (resource("image.openshift.io", "ImageTag"), False),
        (resource("image.openshift.io", "ImageStream"), True),
        (resource("authorization.openshift.io", "Role"), False),
        (resource("authorization.openshift.io", "RoleBinding"), False),
        (resource("rbac.authorization.k8s.io", "RoleBinding"), True),
        (resource("autoscaling", "HorizontalPodAutoscaler"), True),
        (resource("policy", "PodDisruptionBudget"), True),
        (resource("networking.k8s.io", "NetworkPolicy"), True),
    ],
)
def test_kinds_that_may_hold_orphans(kind: Resource, expected: bool) -> None:
    assert is_looked_for(kind) is expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (resource("cert-manager.io", "ClusterIssuer", namespaced=False), True),
        (resource("apiregistration.k8s.io", "APIService", namespaced=False), True),
        (resource("rbac.authorization.k8s.io", "ClusterRoleBinding", namespaced=False), True),
        (resource("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", namespaced=False), True),
        (resource("networking.k8s.io", "IngressClass", namespaced=False), True),
        (resource("gateway.networking.k8s.io", "GatewayClass", namespaced=False), True),
        (resource("groupsnapshot.storage.k8s.io", "VolumeGroupSnapshotClass", namespaced=False), True),
        (resource("networking.k8s.io", "IPAddress", namespaced=False), False),  # each Service has one, which names it
        (resource("cert-manager.io", "Issuer"), False),
        (resource("cert-manager.io", "ClusterIssuer", namespaced=False, verbs=frozenset({"get"})), False),
        (resource("", "Node", namespaced=False), False),
        (resource("wgpolicyk8s.io", "ClusterPolicyReport", namespaced=False), False),
        (resource("image.openshift.io", "Image", namespaced=False), False),
    ],
)
def test_kinds_that_no_namespace_has_and_that_name_something_in_one(kind: Resource, expected: bool) -> None:
    assert is_read_for_names(kind) is expected


@pytest.mark.parametrize(
    ("group", "kind", "expected"),
    [
        ("apps", "StatefulSet", True),
        ("batch", "Job", True),
        ("", "Pod", True),
        ("", "ReplicationController", True),
        ("postgresql.cnpg.io", "Cluster", True),
        ("", "ConfigMap", False),
        ("networking.k8s.io", "NetworkPolicy", False),
        ("objectstorage.k8s.io", "BucketClaim", True),
    ],
)
def test_kinds_that_may_own_what_holds_data(group: str, kind: str, expected: bool) -> None:
    assert may_own_data(GroupKind(group, kind)) is expected


def live(kind: str = "ConfigMap", name: str = "web", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop", "uid": "1", **metadata}}


def rbac(kind: str, name: str, **metadata: Any) -> dict[str, Any]:
    return live(kind, name, **metadata) | {"apiVersion": "rbac.authorization.k8s.io/v1"}


def snapshot(group: str, kind: str) -> dict[str, Any]:
    return live(kind) | {"apiVersion": f"{group}.storage.k8s.io/v1"}


def noun(found: dict[str, Any]) -> str | None:
    return left_alone(found, identity_of(found))


OTHER: dict[str, Any] = {"labels": {PART_OF: "applyset-x-v1"}}
HELM = {"manager": "helm", "operation": "Update", "fieldsV1": {"f:data": {"f:key": {}}}}


@each_row(
    ("found", "expected"),
    [
        (live(), None),
        (live("Pod"), None),
        (live("Job", annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"}), None),
        (live("ResourceQuota"), None),
        (live(managedFields=[{"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:data": {}}}]), None),
        (live("ServiceAccount", "default"), SYSTEM),
        (live("ServiceAccount", "web"), None),
        (live(name="kube-root-ca.crt"), SYSTEM),
        (live("Secret", "kube-root-ca.crt"), None),
        (live(name="openshift-service-ca.crt"), SYSTEM),
        (live(name="istio-ca-root-cert"), SYSTEM),
        (live(name="istio-ca-crl"), SYSTEM),
        (live("Service", "kubernetes", namespace="default"), SYSTEM),
        (live("Service", "kubernetes"), None),
        (live(name="extension-apiserver-authentication", namespace="kube-system"), SYSTEM),
        (rbac("Role", "view", labels={"kubernetes.io/bootstrapping": "rbac-defaults"}), SYSTEM),
        (rbac("Role", "view"), None),
        (rbac("Role", "web", labels={"kubernetes.io/bootstrapping": "rbac-defaults"}), None),
        (live("ServiceAccount", "builder"), "accounts of OpenShift"),
        (live("ServiceAccount", "deployer"), "accounts of OpenShift"),
        (live("ConfigMap", "builder"), None),
        (live("ServiceAccount", "web", annotations={"openshift.io/internal-registry-pull-secret-ref": "web-dockercfg"}), None),
        (live("Secret", annotations={"openshift.io/internal-registry-auth-token.service-account": "builder"}), "tokens of ServiceAccounts"),
        (live("Secret", annotations={"openshift.io/token-secret.name": "builder-token-x"}), "tokens of ServiceAccounts"),
        (rbac("RoleBinding", "system:image-pullers"), "roles and bindings of the system"),
        (rbac("RoleBinding", "system:image-builders"), "roles and bindings of the system"),
        (rbac("RoleBinding", "system:deployers"), "roles and bindings of the system"),
        (rbac("Role", "system:any"), "roles and bindings of the system"),
        (rbac("RoleBinding", "system-any"), None),
        (rbac("RoleBinding", "rb-x", labels={"authz.cluster.cattle.io/rtb-owner-updated": "p-x"}), "what Rancher binds"),
        (live(ownerReferences=[{"kind": "ReplicaSet", "name": "web"}]), SYSTEM),
        (live(**OTHER), "members of ApplySets"),
        (live(**OTHER, annotations={IDENTITY: MAP.mark("api")}), "what belongs to target api"),
        (live(labels={"applyset.kubernetes.io/id": "applyset-x-v1"}), "parents of ApplySets"),
        (live(annotations={"meta.helm.sh/release-name": "db"}), "what belongs to Helm release db"),
        (live(managedFields=[HELM]), "what belongs to Helm (field manager helm)"),
        (live(labels={"kustomize.toolkit.fluxcd.io/name": "apps"}), "what belongs to Flux Kustomization apps"),
        (live("Secret", "sh.helm.release.v1.db.v1", labels={"owner": "helm", "name": "db"}), "records of Helm releases"),
        (live(name="db.v1", labels={"OWNER": "TILLER"}), "records of Helm releases"),
        (live("Secret", annotations={"kubernetes.io/service-account.name": "web"}), "tokens of ServiceAccounts"),
        (live("Secret", "bootstrap-token-abcdef"), "tokens of ServiceAccounts"),
        (live("PersistentVolumeClaim"), "PersistentVolumeClaims, which hold data"),
        (snapshot("snapshot", "VolumeSnapshot"), "VolumeSnapshots, which hold data"),
        (snapshot("groupsnapshot", "VolumeGroupSnapshot"), "VolumeGroupSnapshots, which hold data"),
        (live(annotations={"control-plane.alpha.kubernetes.io/leader": "{}"}), "locks of leader elections"),
        (live("Endpoints", annotations={"control-plane.alpha.kubernetes.io/leader": "{}"}), "locks of leader elections"),
        (live("Secret", "acme-key", labels={"controller.cert-manager.io/fao": "true"}), "certificates of cert-manager"),
        (live("Secret", annotations={"cert-manager.io/allow-direct-injection": "true"}), "certificates of cert-manager"),
        (live("Secret", annotations={"listener.cattle.io/cn-a": "a"}), "certificates of Rancher"),
        (live("Secret", labels={"istio/multiCluster": "true"}), "what Istio reads other clusters with"),
        (live("Secret", "istio-ca-secret"), "the root key of Istio"),
        (live(name="istio-ca-secret"), None),
        (rbac("RoleBinding", "admin"), "the rights of a project's owner on OpenShift"),
        (rbac("Role", "admin"), None),
        (live("Ingress", annotations={"cert-manager.io/cluster-issuer": "le"}), None),
        (live("Secret", annotations={"replicator.v1.mittwald.de/replicated-from-version": "1"}), "what kubernetes-replicator copies"),
        (live("Secret", annotations={"replicator.v1.mittwald.de/replicate-to": "a"}), None),
        (live("Secret", labels={"kubed.appscode.com/origin.name": "a"}), "what the config syncer copies"),
        (live("Secret", annotations={"reflector.v1.k8s.emberstack.com/reflects": "a/b"}), "what Reflector copies"),
        (live("Secret", annotations={"cert-manager.io/certificate-name": "web"}), "certificates of cert-manager"),
        (live(labels={"generate.kyverno.io/policy-name": "x"}), "what Kyverno generates"),
        ({**live("NetworkPolicy", "knp.default.web"), "apiVersion": "projectcalico.org/v3"}, "what Calico mirrors"),
    ],
)
def test_what_is_left_alone_though_git_does_not_declare_it(found: dict[str, Any], expected: str | None) -> None:
    assert noun(found) == expected


@pytest.mark.parametrize(
    ("group", "metadata", "expected"),
    [
        ("s3.services.k8s.aws", {"finalizers": ["finalizers.services.k8s.aws/Bucket", "other"]}, "finalizers.services.k8s.aws/Bucket"),
        ("longhorn.io", {"finalizers": ["longhorn.io"], "annotations": {"a": "b"}}, "longhorn.io"),
        ("cluster.x-k8s.io", {"finalizers": ["cluster.cluster.x-k8s.io"]}, "cluster.cluster.x-k8s.io"),
        ("objectstorage.k8s.io", {"finalizers": ["objectstorage.k8s.io/bucketclaim"]}, "objectstorage.k8s.io/bucketclaim"),
        ("networking.k8s.io", {"finalizers": ["ingress.k8s.aws/resources"]}, ""),
        ("longhorn.io", {"finalizers": ["longhorn.io"], "annotations": {"anneal.dev/prune": "allow"}}, ""),
        ("longhorn.io", {}, ""),
        ("", {"finalizers": ["service.kubernetes.io/load-balancer-cleanup"]}, ""),
    ],
)
def test_what_an_operator_takes_apart(group: str, metadata: dict[str, Any], expected: str) -> None:
    assert taken_apart({"metadata": metadata}, GroupKind(group, "Any")) == expected


def test_the_account_of_a_token_that_a_person_has_made() -> None:
    annotations = {"kubernetes.io/service-account.name": "ci", "kubernetes.io/service-account.uid": "u"}
    made = annotations | {"kubernetes.io/created-by": "openshift.io/create-dockercfg-secrets"}
    found: tuple[dict[str, Any], ...] = (
        {"annotations": annotations},
        {"annotations": made},
        {"annotations": annotations, "ownerReferences": [{"uid": "u"}]},
        {},
    )
    assert [account_of_token(each) for each in found] == ["u", "", "", ""]


def binding(named: str, /, **subject: str) -> dict[str, Any]:
    body = live("RoleBinding", named) | {"apiVersion": "rbac.authorization.k8s.io/v1", "subjects": [subject]}
    return body | {"roleRef": {"kind": "Role", "name": f"role-of-{named}"}}


def role(kind: str, name: str) -> Identity:
    return Identity("rbac.authorization.k8s.io", kind, "shop", name)


BINDINGS = [
    binding("mine", kind="ServiceAccount", name="deployer", namespace="shop"),
    binding("its", kind="ServiceAccount", name="deployer", namespace="other"),
    binding("all", kind="Group", name="system:serviceaccounts"),
    binding("people", kind="User", name="ada"),
]


def test_a_targets_own_account_keeps_its_rights() -> None:
    known = rights_of("system:serviceaccount:shop:deployer", {"system:serviceaccounts"}, BINDINGS)
    account = Identity("", "ServiceAccount", "shop", "deployer")
    bound = {role(kind, name) for name in ("mine", "all") for kind, name in (("RoleBinding", name), ("Role", f"role-of-{name}"))}
    assert known == {account, *bound}
    nouns = [own_rights(each, known) for each in (account, role("Role", "role-of-mine"), role("Role", "anneal-shop"))]
    assert nouns == ["its own account and rights"] * 3
    assert [own_rights(each, known) for each in (role("Role", "role-of-its"), role("RoleBinding", "people"), MAP)] == [None] * 3
    assert rights_of("ada", (), BINDINGS) == {role("RoleBinding", "people"), role("Role", "role-of-people")}


def test_no_account_role_or_binding_goes_where_it_is_not_known_whose_they_are() -> None:
    noun = "accounts, roles and bindings, as its own aren't known"
    found = [
        own_rights(each, None) for each in (Identity("", "ServiceAccount", "shop", "a"), role("Role", "a"), role("RoleBinding", "a"), MAP)
    ]
    assert found == [noun, noun, noun, None]


HOUR, NOW = 3600.0, 100_000.0


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (None, NOW + HOUR),
        (Sighting(NOW - 60, None), NOW + HOUR),
        (Sighting(NOW - 60, NOW - 60 + HOUR), NOW - 60 + HOUR),
        (Sighting(NOW - 60, NOW - 60 + 2 * HOUR), NOW - 60 + 2 * HOUR),
        (Sighting(NOW - 60, NOW + 5), NOW - 60 + HOUR),
        (Sighting(NOW - 2 * HOUR, NOW - HOUR), NOW - HOUR),
    ],
    ids=["new", "was kept", "same grace", "shorter grace now", "longer grace now", "over"],
)
def test_a_time_that_was_shown_never_comes_earlier(known: Sighting | None, expected: float) -> None:
    assert until(known, HOUR, NOW) == expected


def test_a_reason_names_the_namespace() -> None:
    assert said(MAP, "; kept: prune is off") == "isn't declared in exclusive namespace shop; kept: prune is off"


def test_the_grace_of_what_can_not_be_read_begins_again() -> None:
    assert unread(Sighting(0, NOW - 5), HOUR, NOW) == NOW + HOUR
    assert unread(Sighting(0, NOW + 2 * HOUR), HOUR, NOW) == NOW + 2 * HOUR
    assert unread(Sighting(0, None), HOUR, NOW) is None


def going(number: int, space: str = "shop") -> list[Change]:
    names = [f"o{index}" for index in range(number)]
    return [Change(Action.PRUNE, Identity("", "ConfigMap", space, name), f"{space}-{name}", "1", unmarked=True) for name in names]


def members(number: int, space: str = "shop") -> list[Identity]:
    return [Identity("", "ConfigMap", space, f"m{index}") for index in range(number)]


@pytest.mark.parametrize(
    ("changes", "living", "held"),
    [
        (going(300), members(10), True),
        (going(300), [*members(10), *members(5000, "jobs")], True),
        (going(10), members(1), False),
        (going(11), members(36), True),
        (going(11), members(37), False),
        (going(11), [], True),
    ],
)
def test_many_deletions_beside_few_members_of_the_namespace_are_held(changes: list[Change], living: list[Identity], held: bool) -> None:
    found = held_strangers(changes, living, Prune(hold_above=HoldAbove(10, 0.3)))
    assert bool(found) is held
    if held:
        ((key, reason),) = found.items()
        assert key == changes[0].key()
        assert f"{len(changes)} objects that git doesn't declare would be deleted in exclusive namespace shop, beside" in reason


def test_members_that_go_are_not_counted_as_undeclared() -> None:
    assert held_strangers([Change(Action.PRUNE, each, "1") for each in members(30)], [], Prune()) == {}
