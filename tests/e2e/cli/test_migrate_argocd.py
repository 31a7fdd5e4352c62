"""A live Argo CD Application is taken over as docs/migrate.md says, with the marks that Argo CD leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cli.conftest import Shop
from tests.e2e.cli.moving_over import imported, plant, push, push_chart, take_over
from tests.kubectl import Kubectl

TRACKED = {"argocd.argoproj.io/tracking-id": "web:/Any:shop/web"}
LABELLED = {"app.kubernetes.io/instance": "web"}


@pytest.mark.parametrize(
    ("verb", "labels", "annotations"),
    [
        (["apply", "--field-manager=argocd-controller"], {}, TRACKED),
        (["apply", "--server-side", "--field-manager=argocd-controller"], LABELLED, {}),
    ],
    ids=["by-annotation", "by-label-server-side"],
)
def test_a_live_application_is_taken_over(
    shop: Shop, kubectl: Kubectl, tmp_path: Path, verb: list[str], labels: dict[str, str], annotations: dict[str, str]
) -> None:
    push(shop)
    plant(shop, kubectl, verb, labels, annotations)
    take_over_application(shop, kubectl, tmp_path, {"directory": {"recurse": True}})


def test_a_live_application_of_a_kustomization_is_taken_over(shop: Shop, kubectl: Kubectl, tmp_path: Path, renderers: Path) -> None:
    push(shop, kustomization="resources: [configmap.yaml, deployment.yaml, service.yaml]\n")
    plant(shop, kubectl, ["apply", "--field-manager=argocd-controller"], {}, TRACKED)
    target = take_over_application(shop, kubectl, tmp_path, {"kustomize": {}})
    assert "renderer" not in target, "the tree decides, as there"


def test_a_live_application_of_a_chart_is_taken_over(shop: Shop, kubectl: Kubectl, tmp_path: Path, renderers: Path) -> None:
    push_chart(shop)
    plant(shop, kubectl, ["apply", "--field-manager=argocd-controller"], {}, TRACKED)
    helm = {"releaseName": "web", "valuesObject": {"replicas": 1}, "parameters": [{"name": "replicas", "value": "0"}]}
    target = take_over_application(shop, kubectl, tmp_path, {"helm": helm})
    assert target["renderer"] == {"type": "helm", "releaseName": "web", "values": {"replicas": 1}, "set": {"replicas": 0}}


def take_over_application(shop: Shop, kubectl: Kubectl, place: Path, source: dict[str, Any]) -> dict[str, Any]:
    """Import the Application whose source says this, and take it over; return the printed target."""
    spec = {
        "project": "default",
        "source": {
            "repoURL": shop.host.url_of(shop.work.directory.name),
            "path": "deploy",
            "targetRevision": "HEAD",
            **source,
        },
        "destination": {"server": "https://kubernetes.default.svc", "namespace": shop.namespace},
        "syncPolicy": {"automated": {"prune": True, "selfHeal": True}, "syncOptions": ["ServerSideApply=true"]},
    }
    metadata = {"name": "web", "namespace": "argocd", "finalizers": ["resources-finalizer.argocd.argoproj.io"]}
    application = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}
    found = imported(shop, place / "argocd.yaml", application)
    assert (found["adopt"], found["drift"], found.get("suspend")) == (["argocd"], "correct", None)
    take_over(shop, kubectl, "web")
    return found
