"""A live Argo CD Application is taken over as docs/migrate.md says, with the marks that Argo CD leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.cli.conftest import Shop
from tests.e2e.cli.moving_over import imported, plant, push, take_over
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
    spec = {
        "project": "default",
        "source": {
            "repoURL": shop.host.url_of(shop.work.directory.name),
            "path": "deploy",
            "targetRevision": "HEAD",
            "directory": {"recurse": True},
        },
        "destination": {"server": "https://kubernetes.default.svc", "namespace": shop.namespace},
        "syncPolicy": {"automated": {"prune": True, "selfHeal": True}, "syncOptions": ["ServerSideApply=true"]},
    }
    metadata = {"name": "web", "namespace": "argocd", "finalizers": ["resources-finalizer.argocd.argoproj.io"]}
    application = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}
    found = imported(shop, tmp_path / "argocd.yaml", application)
    assert (found["adopt"], found["drift"], found.get("suspend")) == (["argocd"], "correct", None)
    take_over(shop, kubectl, "web")
