"""Locutus' walk with a custom resource: its files as its repository has them, but for two words that today's Kubernetes wants otherwise."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.serve_process import ROOT
from tests.in_process import ran
from tests.kubectl import Kubectl
from tests.locutus import CONFIG, CUSTOM
from tests.patience import PATIENCE, until

GROUP = "monitoring.coreos.com"
PROGRAM = """\
local config = import 'generic-operator/config';
local others = import 'locutus-runtime/deployment/list';

{
  objects: {
    deployment: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: {
        name: 'grafana-' + config.metadata.name,
        namespace: config.metadata.namespace,
        labels: { app: 'grafana' },
        annotations: { beside: std.toString(std.length([each for each in others if each.metadata.name == 'beside'])) },
        ownerReferences: [{
          apiVersion: config.apiVersion,
          blockOwnerDeletion: true,
          controller: true,
          kind: config.kind,
          name: config.metadata.name,
          uid: config.metadata.uid,
        }],
      },
      spec: {
        replicas: config.spec.replicas,
        selector: { matchLabels: { app: 'grafana' } },
        template: {
          metadata: { labels: { app: 'grafana' } },
          spec: { containers: [{ image: 'grafana/grafana:5.2.2', name: 'grafana' }] },
        },
      },
    },
  },
  rollout: (import 'rollout.jsonnet'),
}
"""
ROLLOUT = """\
{
  apiVersion: 'workflow.kubernetes.io/v1alpha1',
  kind: 'Rollout',
  metadata: { name: 'jsonnet' },
  spec: { groups: [{ name: 'Rollout Grafana', steps: [{ action: 'CreateOrUpdate', object: 'deployment', success: [{ fieldComparisons: [
    { name: 'Generation correct', path: '{.metadata.generation}', value: { path: '{.status.observedGeneration}' } },
    { name: 'All replicas updated', path: '{.status.replicas}', value: { path: '{.status.updatedReplicas}' } },
    { name: 'No replica unavailable', path: '{.status.unavailableReplicas}', default: 0, value: { static: 0 } },
  ] }] }] }] },
}
"""


def config_of(group: str) -> str:
    """Locutus' file, of a group of the test's own."""
    regex = "([a-z0-9]([-a-z0-9]*[a-z0-9])?)/grafana-(.*)"
    return f"""\
mainResource: grafana
resources:
- name: grafana
  kind: Grafana
  apiVersion: {group}/v1
- name: deployment
  kind: Deployment
  apiVersion: apps/v1
  keyTransformations:
  - action: keep
    regex: "{regex}"
  - regex: "{regex}"
    replacement: "$1/$3"
"""


@pytest.fixture
def group(kubectl: Kubectl) -> Iterator[str]:
    """A kind Grafana of the test's own: today's CustomResourceDefinition is of `v1`, and has a schema."""
    name = f"{secrets.token_hex(4)}.{GROUP}"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": schema}
    spec = {"group": name, "names": {"kind": "Grafana", "plural": "grafanas"}, "scope": "Namespaced", "versions": [version]}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"grafanas.{name}"},
        "spec": spec,
    }
    kubectl.run("create", "-f", "-", given=json.dumps(crd))
    until(lambda: kubectl.ask("GET", f"/apis/{name}/v1/grafanas") is not None)
    yield name
    kubectl.ask("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/grafanas.{name}")


def test_the_walk_of_a_custom_resource(kubectl: Kubectl, group: str, tmp_path: Path) -> None:
    space = f"l-{secrets.token_hex(4)}"
    kubectl.create_namespace(space)
    place = tmp_path / Path(CONFIG).parent
    place.mkdir(parents=True)
    for name, text in {"main.jsonnet": PROGRAM, "rollout.jsonnet": ROLLOUT, "config.yaml": config_of(group)}.items():
        (place / name).write_text(text)
    grafana = {"apiVersion": f"{group}/v1", "kind": "Grafana", "metadata": {"name": "main", "namespace": space}, "spec": {"replicas": 3}}
    kubectl.run("create", "-f", "-", given=json.dumps(grafana))
    words = [word.replace("$KUBECONFIG", str(kubectl.kubeconfig)) for word in shlex.split(CUSTOM)]
    command, environ = [sys.executable, "-m", "handler", *words], {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    rendered = ran([*words, "--render-only"], environ, tmp_path)
    assert json.loads(rendered.stdout)["objects"]["deployment"]["spec"]["replicas"] == 3
    log, deployments = tmp_path / "log", f"/apis/apps/v1/namespaces/{space}/deployments"
    own = f"/apis/{group}/v1/namespaces/{space}/grafanas/main"

    def deployment() -> dict[str, object]:
        live = kubectl.ask("GET", f"{deployments}/grafana-main")
        return {**live["spec"], **(live["metadata"]["annotations"])} if live else {}

    def said() -> dict[str, str]:
        conditions = ((kubectl.ask("GET", own) or {}).get("status") or {}).get("conditions") or ()
        return {each["name"]: each["currentStatus"] for each in conditions}

    with log.open("wb") as out, subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=out) as process:
        try:
            names = (f"locutus.{space}.main", "Rollout Grafana", "deployment")
            until(lambda: said() == dict.fromkeys(names, "Finished"), log.read_text)
            assert (deployment()["replicas"], deployment()["beside"]) == (3, "0")
            kubectl.ask("PATCH", own, {"spec": {"replicas": 5}}, "application/merge-patch+json")
            until(lambda: deployment()["replicas"] == 5, log.read_text)
            kubectl.run("scale", "deployment", "grafana-main", "-n", space, "--replicas=1")
            until(lambda: deployment()["replicas"] == 5, log.read_text)  # a listed object leads to its instance
            kubectl.ask("DELETE", own)
            until(lambda: not deployment(), log.read_text)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    kubectl.ask("DELETE", f"/api/v1/namespaces/default/configmaps/anneal-locutus.{space}.main")
    kubectl.leave_namespaces(space)
