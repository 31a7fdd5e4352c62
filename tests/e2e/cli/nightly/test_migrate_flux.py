"""A live Flux Kustomization and a live HelmRelease are taken over as docs/migrate.md says, with the marks that Flux leaves."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.cli.conftest import Shop
from tests.e2e.cli.moving_over import imported, live, plant, push, push_chart, take_over
from tests.e2e.documents import Document
from tests.kubectl import Kubectl

BY_KUSTOMIZATION = {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
BY_RELEASE = {
    "helm.toolkit.fluxcd.io/name": "web",
    "helm.toolkit.fluxcd.io/namespace": "flux-system",
    "app.kubernetes.io/managed-by": "Helm",
    "app.kubernetes.io/instance": "web",
    "helm.sh/chart": "web-1.0.0",
}


def git(shop: Shop) -> Document:
    spec = {"interval": "1m", "url": shop.host.url_of(shop.work.directory.name), "ref": {"branch": "main"}}
    metadata = {"name": "shop", "namespace": "flux-system"}
    return {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": metadata, "spec": spec}


def test_a_live_kustomization_is_taken_over(shop: Shop, kubectl: Kubectl, tmp_path: Path, renderers: Path) -> None:
    push(shop)
    plant(shop, kubectl, ["apply", "--server-side", "--field-manager=kustomize-controller"], BY_KUSTOMIZATION, {})
    spec = {
        "interval": "10m",
        "path": "./deploy",
        "prune": True,
        "wait": True,
        "timeout": "2m",
        "targetNamespace": shop.namespace,
        "sourceRef": {"kind": "GitRepository", "name": "shop"},
    }
    metadata = {"name": "apps", "namespace": "flux-system"}
    kustomization = {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata, "spec": spec}
    found = imported(shop, tmp_path / "flux.yaml", git(shop), kustomization)
    assert (found["adopt"], found["renderer"], found["path"]) == (["flux"], {"type": "kustomize", "generate": True}, "deploy")
    take_over(shop, kubectl, "apps")


def test_a_live_helm_release_is_taken_over(shop: Shop, kubectl: Kubectl, tmp_path: Path, renderers: Path) -> None:
    push_chart(shop)
    marks = {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": shop.namespace}
    plant(shop, kubectl, ["create", "--field-manager=helm-controller"], BY_RELEASE, marks)
    labels = {"owner": "helm", "name": "web", "status": "deployed", "version": "1"}
    stored = "sh.helm.release.v1.web.v1"
    place = {"name": stored, "namespace": shop.namespace, "labels": labels}
    kept = {"apiVersion": "v1", "kind": "Secret", "metadata": place, "type": "helm.sh/release.v1", "stringData": {"release": "H4sI"}}
    kubectl.run("create", "--field-manager=helm-controller", "-f", "-", given=json.dumps(kept))
    chart = {"spec": {"chart": "./deploy", "sourceRef": {"kind": "GitRepository", "name": "shop"}}}
    spec = {"interval": "10m", "chart": chart, "targetNamespace": shop.namespace, "releaseName": "web", "values": {"replicas": 0}}
    metadata = {"name": "web", "namespace": "flux-system"}
    release = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": metadata, "spec": spec}
    found = imported(shop, tmp_path / "flux.yaml", git(shop), release)
    assert found["adopt"] == ["flux", "helm"]
    assert found["renderer"] == {"type": "helm", "releaseName": "web", "values": {"replicas": 0}}
    take_over(shop, kubectl, "web")
    assert kubectl.has("secret", stored, shop.namespace), "what Helm stored is left to the last command of the page"
    before = live(shop, kubectl)
    kubectl.run("delete", "secret", stored, "-n", shop.namespace)
    assert live(shop, kubectl) == before
    shop.cli("plan", "web", "--exit-code")
