"""What declared objects name: each way in which pods, accounts, bindings and routes name something of their namespace."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.names import GroupKind, Identity, identity_of
from handler.plan.references import may_name, named_by, user_of


def names(kind: str, *, version: str = "v1", namespace: str = "shop", **body: Any) -> set[tuple[str, str, str]]:
    metadata = {"name": "web", "namespace": namespace, "labels": {"service": "label"}, **body.pop("metadata", {})}
    whole = {"apiVersion": version, "kind": kind, "metadata": metadata, **body}
    found = named_by([(identity_of(whole), whole)])
    assert set(found.values()) <= {identity_of(whole)}
    return set(found)


def pod(**spec: Any) -> dict[str, Any]:
    return {"template": {"metadata": {"labels": {"secret": "label"}}, "spec": spec}, "selector": {"matchLabels": {"service": "label"}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "a", "key": "k"}}}]}]}, "Secret"),
        ({"containers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}}]}]}, "ConfigMap"),
        ({"initContainers": [{"envFrom": [{"secretRef": {"name": "a"}}]}]}, "Secret"),
        ({"containers": [{"envFrom": [{"configMapRef": {"name": "a"}}]}]}, "ConfigMap"),
        ({"imagePullSecrets": [{"name": "a"}]}, "Secret"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "a"}}]}, "Secret"),
        ({"volumes": [{"name": "v", "configMap": {"name": "a"}}]}, "ConfigMap"),
        ({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "a"}}]}}]}, "Secret"),
        ({"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "a"}}]}}]}, "ConfigMap"),
        ({"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "a"}}}]}, "Secret"),
        ({"serviceAccountName": "a"}, "ServiceAccount"),
        ({"resourceClaims": [{"name": "c", "resourceClaimName": "a"}]}, "ResourceClaim"),
        ({"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "a"}]}, "ResourceClaimTemplate"),
    ],
)
def test_what_a_workload_uses(spec: dict[str, Any], expected: str) -> None:
    found = names("Deployment", version="apps/v1", spec=pod(**spec))
    assert (expected, "shop", "a") in found
    assert not any(name == "label" for *_, name in found), found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"secrets": [{"name": "a"}]}, ("Secret", "shop", "a")),
        ({"imagePullSecrets": [{"name": "a"}]}, ("Secret", "shop", "a")),
        ({"spec": {"serviceName": "a"}}, ("Service", "shop", "a")),
        ({"spec": {"tls": [{"hosts": ["h"], "secretName": "a"}]}}, ("Secret", "shop", "a")),
        ({"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}}, ("Service", "shop", "a")),
        ({"spec": {"rules": [{"backendRefs": [{"name": "a", "namespace": "jobs"}]}]}}, ("Service", "jobs", "a")),
        ({"spec": {"listeners": [{"tls": {"certificateRefs": [{"name": "a"}]}}]}}, ("Secret", "shop", "a")),
        ({"spec": {"acme": {"privateKeySecretRef": {"name": "a"}}}}, ("Secret", "shop", "a")),
        ({"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}}, ("Deployment", "shop", "a")),
        ({"roleRef": {"kind": "Role", "name": "a"}}, ("Role", "shop", "a")),
        ({"subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "jobs"}]}, ("ServiceAccount", "jobs", "a")),
        ({"metadata": {"annotations": {"nginx.ingress.kubernetes.io/auth-secret": "jobs/a"}}}, ("Secret", "jobs", "a")),
        ({"parameters": {"csi.storage.k8s.io/provisioner-secret-name": "a"}}, ("Secret", "shop", "a")),
        ({"spec": {"config_map": "a", "secret_key_ref": {"name": "b"}}}, ("Secret", "shop", "b")),
        ({"spec": {"policyName": "p", "paramRef": {"name": "a", "namespace": "jobs"}}}, ("ConfigMap", "jobs", "a")),
        ({"spec": {"parametersRef": {"group": "", "kind": "ConfigMap", "name": "a", "namespace": "jobs"}}}, ("ConfigMap", "jobs", "a")),
        ({"webhooks": [{"clientConfig": {"service": {"name": "a", "namespace": "jobs"}}}]}, ("Service", "jobs", "a")),
    ],
)
def test_what_other_objects_name(body: dict[str, Any], expected: tuple[str, str, str]) -> None:
    assert expected in names("Any", **body)


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
@pytest.mark.parametrize(
    "spec",
    [
        {"endpoints": [{"basicAuth": {"username": {"name": "a", "key": "user"}}}]},
        {"endpoints": [{"authorization": {"credentials": {"name": "a", "key": "token"}}}]},
        {"additionalScrapeConfigs": {"name": "a", "key": "jobs.yaml"}},
        {"backup": {"barmanObjectStore": {"s3Credentials": {"accessKeyId": {"name": "a", "key": "id"}}}}},
    ],
)
def test_a_name_with_a_key_is_a_secret_or_a_config_map(spec: dict[str, Any], kind: str) -> None:
    assert (kind, "shop", "a") in names("Any", spec=spec)


def test_an_issuer_is_named_without_its_kind() -> None:
    assert ("Issuer", "shop", "ca") in names("Certificate", spec={"issuerRef": {"name": "ca"}})


def test_what_a_cluster_scoped_object_names_may_live_in_any_namespace() -> None:
    issuer = {"apiVersion": "cert-manager.io/v1", "kind": "ClusterIssuer", "metadata": {"name": "ca"}}
    bodies = [issuer | {"spec": {"ca": {"secretName": "root-ca"}, "other": {"secretRef": {"name": "b", "namespace": "jobs"}}}}]
    named = named_by([(identity_of(each), each) for each in bodies])
    assert user_of(Identity("", "Secret", "cert-manager", "root-ca"), named) == identity_of(issuer)
    found = [user_of(Identity("", "Secret", space, "b"), named) for space in ("jobs", "shop")]
    assert found == [identity_of(issuer), None]


def test_what_names_nothing() -> None:
    assert [may_name(GroupKind(group, kind)) for group, kind in (("", "ConfigMap"), ("", "Secret"), ("apps", "Deployment"))] == [0, 0, 1]
    for field in ("managedFields", "ownerReferences"):
        assert names("Pod", metadata={field: [{"kind": "Secret", "name": "a"}]}) == set()
    assert names("Pod", spec={"automountServiceAccountToken": "a", "containers": [{"name": "web", "secretName": 7}]}) == set()
    assert names("Pod", spec={"secrets": [None, 3], "service": {"port": 80}}) == set()
    assert names("Pod", spec={"serviceAccountName": "a"}, namespace="jobs") == {("ServiceAccount", "jobs", "a")}
