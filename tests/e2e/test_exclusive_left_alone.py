"""What total control over a namespace never deletes: each kind of it a real object, beside twins without what saves it, which go."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handler.model.names import PART_OF
from infra.renderers.build import binaries
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, claim, config_map, definition, deployment, job, offer, pods, secret, service, stateful_set
from tests.e2e.exclusive_shop import ExclusiveShop
from tests.e2e.one_target import Shop
from tests.patience import PATIENCE, until

FLUX = {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
RBAC = "rbac.authorization.k8s.io"
VIEW = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
PROTECTIONS = {
    "anneal.dev/prune": "disabled",
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
    "argocd.argoproj.io/sync-options": "Prune=false",
    "helm.sh/resource-policy": "keep",
    "cli-utils.sigs.k8s.io/on-remove": "keep",
    "client.lifecycle.config.k8s.io/deletion": "detach",
    "kapp.k14s.io/delete-strategy": "orphan",
    "kluctl.io/skip-delete": "true",
}
HELD = "example.com/held"
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-helm}\ndata: {key: '1'}\n",
}


def typed(version: str, kind: str, space: str, name: str, **body: Any) -> Document:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": space}, **body}


def token(space: str, name: str, account: str = "default") -> Document:
    annotations = {"kubernetes.io/service-account.name": account}
    return secret(space, name, "x", annotations=annotations) | {"type": "kubernetes.io/service-account-token"}


def bound(space: str) -> Document:
    """Return a binding, which no namespace has, of an account there."""
    subject = {"kind": "ServiceAccount", "name": "bound", "namespace": space}
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": space}, "roleRef": VIEW, "subjects": [subject]}


def leading(space: str, name: str) -> Document:
    return config_map(space, name, annotations={"control-plane.alpha.kubernetes.io/leader": '{"holderIdentity":"a"}'})


def database(space: str) -> tuple[Document, Document]:
    """Return a StatefulSet with which its claim would go, and what its pod mounts."""
    key = secret(space, "database-key", "x")
    made = stateful_set(space, "database")
    mounted = {"volumes": [{"name": "key", "secret": {"secretName": "database-key"}}]}
    made["spec"]["template"]["spec"] |= mounted
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made["spec"] |= {"replicas": 1, "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"}}
    made["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": wanted}]
    return made, key


def saved(shop: Shop) -> dict[str, Document]:
    """What stays, by why."""
    space = shop.name
    slices = {"addressType": "IPv4", "endpoints": []}
    event = {"involvedObject": {"kind": "Pod", "name": "a", "namespace": space}, "reason": "Seen", "message": "by hand", "type": "Normal"}
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "uid": (shop.live(config_map(space, "web")) or {})["metadata"]["uid"]}
    found = {
        "member-of-an-applyset": config_map(space, "member", labels={PART_OF: "applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1"}),
        "member-by-copied-label": config_map(space, "copy", labels={PART_OF: shop.applyset}),
        "endpoints": typed("v1", "Endpoints", space, "by-hand", subsets=[]),
        "endpoint-slice": typed("discovery.k8s.io/v1", "EndpointSlice", space, "by-hand", **slices),
        "event": typed("v1", "Event", space, "by-hand", **event),
        "lease": typed("coordination.k8s.io/v1", "Lease", space, "by-hand", spec={"holderIdentity": "a"}),
        "controller-revision": typed("apps/v1", "ControllerRevision", space, "by-hand", revision=1, data={"spec": {}}),
        "metrics": typed(f"{space}.metrics.k8s.io/v1", "Offer", space, "by-hand", spec={"price": 1}),
        "service-account-token": token(space, "token"),
        "account-with-a-token": typed("v1", "ServiceAccount", space, "ci"),
        "token-of-an-account": token(space, "ci-token", "ci"),
        "bound-in-the-cluster": typed("v1", "ServiceAccount", space, "bound"),
        "taken-apart-by-its-operator": offer(shop.group, space, "held", finalizers=[HELD]),
        "bootstrap-token": secret(space, "bootstrap-token-abcdef", "x"),
        "claim": claim(space, "data"),
        "owner-of-a-claim": database(space)[0],
        "used-by-its-pod": database(space)[1],
        "account-of-openshift": typed("v1", "ServiceAccount", space, "builder"),
        "binding-of-the-system": typed(f"{RBAC}/v1", "RoleBinding", space, "system:deployers", roleRef=VIEW, subjects=[]),
        "owned": config_map(space, "owned", ownerReferences=[owner]),
        "leader-election": leading(space, "leader"),
        "certificate": secret(space, "tls", "x", annotations={"cert-manager.io/certificate-name": "web"}),
        "flux-label": config_map(space, "of-flux", labels=FLUX),
        "argocd-annotation": config_map(space, "of-argocd", annotations={"argocd.argoproj.io/tracking-id": f"web:/ConfigMap:{space}/x"}),
        "kapp-label": config_map(space, "of-kapp", labels={"kapp.k14s.io/app": "1"}),
        "kluctl-label": config_map(space, "of-kluctl", labels={"kluctl.io/discriminator": "web"}),
        "kubernixos-label": config_map(space, "of-kubernixos", labels={"kubernixos": "0a1b"}),
        "fleet-annotation": config_map(space, "of-fleet", annotations={"objectset.rio.cattle.io/id": "web"}),
        "cli-utils-annotation": config_map(space, "of-cli-utils", annotations={"config.k8s.io/owning-inventory": "web"}),
    }
    for number, (key, value) in enumerate(PROTECTIONS.items()):
        found[f"protected-{key}"] = config_map(space, f"protected-{number}", annotations={key: value})
    return found


def strays(shop: Shop) -> list[Document]:
    """What has nothing that saves it."""
    space, backend = shop.name, {"service": {"name": "web", "port": {"number": 80}}}
    return [
        config_map(space, "stray", labels={"app.kubernetes.io/managed-by": "Helm"}),
        secret(space, "stray", "x"),
        service(space, "stray"),
        deployment(space, "stray"),
        job(space, "stray"),
        typed("v1", "Pod", space, "stray", spec=pods({}, "shop:1")["spec"]),
        typed("v1", "ServiceAccount", space, "stray"),
        typed("v1", "ResourceQuota", space, "stray", spec={"hard": {"pods": "100"}}),
        typed("v1", "LimitRange", space, "stray", spec={"limits": []}),
        typed(f"{RBAC}/v1", "Role", space, "stray", rules=[]),
        typed("networking.k8s.io/v1", "Ingress", space, "stray", spec={"defaultBackend": backend}),
        offer(shop.group, space, "stray"),
    ]


def install_chart(shop: Shop, place: Path) -> None:
    """Install a release by helm itself."""
    for name, text in CHART.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    command = [str(binaries() / "helm"), "install", "web", str(place), "-n", shop.name, "--kubeconfig", str(shop.kubectl.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE, env={**os.environ, "HOME": str(place)})
    assert done.returncode == 0, done.stderr


def by_applyset(shop: Shop) -> None:
    """Apply a set by kubectl itself."""
    command = ["apply", "-n", shop.name, "--server-side", "--prune", "--applyset=configmaps/set", "-f", "-"]
    settings = [str(shop.kubectl.program), f"--kubeconfig={shop.kubectl.kubeconfig}", *command]
    given = json.dumps(config_map(shop.name, "of-kubectl"))
    environ = {**os.environ, "KUBECTL_APPLYSET": "true"}
    done = subprocess.run(settings, input=given, capture_output=True, text=True, check=False, timeout=PATIENCE, env=environ)
    assert done.returncode == 0, done.stderr


SEEN = (
    "Helm release web (1)",
    "PersistentVolumeClaims, which hold data (1)",
    "accounts of OpenShift (1)",
    "roles and bindings of the system (1)",
    "tokens of ServiceAccounts (3)",
    "records of Helm releases (1)",
)
"""What a plan says of what is left alone."""


@pytest.fixture
def definitions(shop: Shop) -> Iterator[None]:
    """Two kinds of the shop's own, one of them of metrics, and a binding that no namespace has."""
    metrics = f"{shop.name}.metrics.k8s.io"
    made = [definition(shop.group), definition(metrics, annotations={"api-approved.kubernetes.io": "unapproved"})]
    shop.kubectl.apply(*made, bound(shop.name))
    until(lambda: all(shop.kubectl.ask("GET", f"/apis/{group}/v1") for group in (metrics, shop.group)))
    yield
    shop.kubectl.ask("DELETE", f"/apis/{RBAC}/v1/clusterrolebindings/{shop.name}")
    held = f"/apis/{shop.group}/v1/namespaces/{shop.name}/offers/held"
    shop.kubectl.ask("PATCH", held, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    for each in made:
        shop.kubectl.ask("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{each['metadata']['name']}")


@pytest.mark.usefixtures("definitions")
def test_what_something_saves_is_left_alone_and_named_and_the_rest_is_deleted(shop: Shop, open_shop: Open, tmp_path: Path) -> None:
    made, other = ExclusiveShop(shop), open_shop()
    other.configure(namespaces=(shop.name,), cluster_scoped=())
    other.push(config_map(shop.name, "of-another-target"))
    other.applied()
    install_chart(shop, tmp_path)
    by_applyset(shop)
    found, going, by_flux = saved(shop), strays(shop), config_map(shop.name, "by-flux")
    made.plant(*found.values())
    made.plant(*going)
    shop.kubectl.run("apply", "--server-side", "--field-manager=kustomize-controller", "-f", "-", given=json.dumps(by_flux))
    found |= {
        "default-service-account": typed("v1", "ServiceAccount", shop.name, "default"),
        "root-certificate": config_map(shop.name, "kube-root-ca.crt"),
        "another-target": config_map(shop.name, "of-another-target"),
        "helm-object": config_map(shop.name, "of-helm"),
        "helm-release": secret(shop.name, "sh.helm.release.v1.web.v1", ""),
        "applyset-of-kubectl": config_map(shop.name, "of-kubectl"),
        "applyset-parent": config_map(shop.name, "set"),
        "flux-field-manager": by_flux,
        "declared": made.web,
    }
    until(lambda: all(map(shop.live, found.values())))
    until(lambda: ((shop.live(claim(shop.name, "data-database-0")) or {}).get("metadata") or {}).get("ownerReferences"))
    until(lambda: shop.live(typed("v1", "Pod", shop.name, "database-0")))
    before = uids(shop, found)
    assert before.keys() == found.keys()
    made.run()
    for _ in range(2):
        made.ahead += 7200
        result = made.run()
    assert uids(shop, found) == before
    living = [each["kind"] for each in going if (live := shop.live(each)) and not live["metadata"].get("deletionTimestamp")]
    assert living == []
    notes = result.plan.notes if result.plan else ()
    assert [seen for seen in SEEN if not any(seen in note for note in notes)] == [], notes


def uids(shop: Shop, found: dict[str, Document]) -> dict[str, str]:
    bodies = {why: shop.live(document) for why, document in found.items()}
    return {why: body["metadata"]["uid"] for why, body in bodies.items() if body and not body["metadata"].get("deletionTimestamp")}
