"""Anneal deploys Anneal: every form of its manifests, by itself, with the least rights, where only restricted pods may run."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler.app.build import WORKLOAD
from infra.controlplane import controlplane as controlplanes
from infra.githost import Host
from tests.e2e.self_deploy import ACCOUNT, Bed, application
from tests.kubectl import Kubectl
from tests.manifests import NAMES, NAMESPACE, OVERLAYS, Forms, documents, one

pytestmark = pytest.mark.usefixtures("renderers")
WORSE: tuple[dict[str, Any], ...] = ({"privileged": True, "allowPrivilegeEscalation": True}, {"capabilities": {}})
"""Security contexts that the restricted standard refuses."""


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A control plane of this file's own: the manifests have names that only one of them may have in a cluster."""
    place = tmp_path_factory.mktemp("self")
    kubeconfig = controlplanes.up(place / "cluster")
    try:
        with Host() as host:
            made = Bed(Kubectl(controlplanes.binaries() / "kubectl", kubeconfig), host, place)
            try:
                yield made
            finally:
                made.close()
    finally:
        controlplanes.down(place / "cluster")


@pytest.fixture(autouse=True)
def workload(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the pod's environment says; our servers run outside of the cluster, for kwok's pods run nothing."""
    monkeypatch.setenv(WORKLOAD, f"{NAMESPACE}/anneal")


@pytest.mark.parametrize("overlay", NAMES)
def test_kubectl_takes_an_overlay_and_its_rights_are_what_anneal_rbac_prints(bed: Bed, overlay: str, tmp_path: Path) -> None:
    work = bed.work(f"printed-{overlay}")
    (target,) = yaml.safe_load((OVERLAYS / overlay / "anneal.yaml").read_text())["targets"]
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}] if target["namespaces"] == "*" else []
    bed.push(work, yaml.safe_dump_all([*namespaces, *application("shop")]))
    config = bed.of_overlay(overlay, work)
    printed = bed.cli(config, "rbac", "--service-account", ACCOUNT, kubeconfig=bed.kubectl.kubeconfig)
    (tmp_path / "rbac.yaml").write_text(printed)
    assert (OVERLAYS / overlay / "rbac.yaml").read_text() == printed, f"cp {tmp_path}/rbac.yaml {OVERLAYS / overlay}"
    bed.kubectl.run("apply", "-k", str(OVERLAYS / overlay), "--dry-run=server", "--validate=strict")


def test_only_restricted_pods_are_admitted_and_ours_are(bed: Bed, tmp_path: Path) -> None:
    forms = Forms("sqs-workers", tmp_path / "k")
    for found, name in itertools.product(map(documents, (forms.kustomize(), forms.helm())), ("anneal", "anneal-worker")):
        spec = one(found, "Deployment", name)["spec"]["template"]["spec"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried", "namespace": NAMESPACE}, "spec": spec}
        tried = ("create", "--dry-run=server", "-f", "-")
        bed.kubectl.run(*tried, given=json.dumps(pod))
        (container,) = spec["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True, name
        for worse in WORSE:
            security = {**container["securityContext"], **worse}
            loose = {**pod, "spec": {**spec, "containers": [{**container, "securityContext": security}]}}
            refused = bed.kubectl.tried(*tried, given=json.dumps(loose))
            assert 'violates PodSecurity "restricted:latest"' in refused.stderr, worse
