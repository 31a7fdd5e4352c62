"""`anneal import --from-cluster`: the kinds that a cluster serves, their metadata and spec; no Secret is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from handler.cli.group import anneal
from infra.controlplane import controlplane as controlplanes
from tests.e2e.documents import Document, any_definition
from tests.kubectl import Kubectl

GIT = {"url": "https://git.example.com/acme/shop", "secretRef": {"name": "login"}}
SOURCES, KUSTOMIZE = "source.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io"


@pytest.fixture
def cluster(spare_directory: Path) -> Kubectl:
    """A cluster of the test's own, for what it serves is seen by all."""
    kubeconfig = controlplanes.up(spare_directory)
    return Kubectl(controlplanes.binaries() / "kubectl", kubeconfig)


def made(group: str, kind: str, namespace: str, name: str, spec: Any) -> Document:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": spec, "status": {"conditions": []}}


def test_objects_of_a_cluster_are_imported_as_files_are(cluster: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 0) -> Result:
        environ = {"KUBECONFIG": str(cluster.kubeconfig), "ANNEAL_CONFIG": None}
        result = CliRunner(env=environ).invoke(anneal, ["import", "--from-cluster", *arguments])
        assert result.exit_code == code, result.output
        return result

    assert "the cluster: has no object that import knows" in run(code=1).stderr
    definitions = [any_definition(SOURCES, "GitRepository", "v1", "v1beta2"), any_definition(KUSTOMIZE, "Kustomization", "v1")]
    cluster.apply(*definitions)
    for each in definitions:
        cluster.run("wait", "--for=condition=Established", f"crd/{each['metadata']['name']}")
    for namespace in ("flux-system", "other"):
        cluster.create_namespace(namespace)
    spec = {"path": "deploy", "prune": True, "sourceRef": {"kind": "GitRepository", "name": "shop", "namespace": "flux-system"}}
    apps = [made(KUSTOMIZE, "Kustomization", namespace, name, spec) for namespace, name in (("flux-system", "apps"), ("other", "more"))]
    cluster.apply(made(SOURCES, "GitRepository", "flux-system", "shop", GIT), *apps)

    result = run()
    found = yaml.safe_load(result.stdout)
    assert [each["name"] for each in found["targets"]] == ["apps", "more"]
    assert "  # set: path from Kustomization/flux-system/apps spec.path (cluster)\n" in result.stdout
    assert "status" not in result.stdout
    assert "flux-system/login/password" in result.stdout
    limited = run("-n", "flux-system")
    assert [each["name"] for each in yaml.safe_load(limited.stdout)["targets"]] == ["apps"]
    missing = run("-n", "other", code=1)
    assert "kubectl get GitRepository.source.toolkit.fluxcd.io/shop -n flux-system -o yaml" in missing.stderr
