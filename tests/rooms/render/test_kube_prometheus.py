"""kube-prometheus' own example by both engines, object by object; where its repositories lie beside the checkout, as bare mirrors.

Its `vendor/` is put together of them as jsonnet-bundler would. Of what isn't mirrored (Grafana's own mixin) a line stands in its place.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from handler.config.renderer_settings import RendererSettings
from handler.model.render import RenderRequest
from handler.render import RENDERERS, Sandbox
from tests.fakes.source_tree import FakeTree
from tests.rooms.render.kustomize_trees import public_tools

MIRRORS = next((found for each in Path(__file__).parents if (found := each / ".mirror").is_dir()), None)
LIBRARIES = (
    ("brancz/kubernetes-grafana", "grafana"),
    ("etcd-io/etcd", "contrib/mixin"),
    ("prometheus-operator/prometheus-operator", "jsonnet/prometheus-operator"),
    ("prometheus-operator/prometheus-operator", "jsonnet/mixin"),
    ("kubernetes-monitoring/kubernetes-mixin", ""),
    ("kubernetes/kube-state-metrics", "jsonnet"),
    ("prometheus/node_exporter", "docs/node-mixin"),
    ("prometheus/prometheus", "documentation/prometheus-mixin"),
    ("prometheus/alertmanager", "doc/alertmanager-mixin"),
    ("pyrra-dev/pyrra", "jsonnet/controller-gen"),
    ("grafana/grafonnet-lib", "grafonnet"),
    ("grafana/grafonnet", "gen/grafonnet-latest"),
    ("grafana/grafonnet", "gen/grafonnet-v11.4.0"),
    ("grafana/jsonnet-libs", "mixin-utils"),
    ("jsonnet-libs/xtd", ""),
    ("jsonnet-libs/docsonnet", "doc-util"),
)
LINKS = {
    "grafana": "brancz/kubernetes-grafana/grafana",
    "prometheus-operator": "prometheus-operator/prometheus-operator/jsonnet/prometheus-operator",
    "prometheus-operator-mixin": "prometheus-operator/prometheus-operator/jsonnet/mixin",
    "kubernetes-mixin": "kubernetes-monitoring/kubernetes-mixin",
    "kube-state-metrics": "kubernetes/kube-state-metrics/jsonnet/kube-state-metrics",
    "kube-state-metrics-mixin": "kubernetes/kube-state-metrics/jsonnet/kube-state-metrics-mixin",
    "node-mixin": "prometheus/node_exporter/docs/node-mixin",
    "prometheus": "prometheus/prometheus/documentation/prometheus-mixin",
    "alertmanager": "prometheus/alertmanager/doc/alertmanager-mixin",
    "pyrra": "pyrra-dev/pyrra/jsonnet/controller-gen",
    "grafonnet": "grafana/grafonnet-lib/grafonnet",
}


STAND_IN = """{
  _config+:: { threshold: 50 },
  prometheusAlerts+:: { groups+: [{ name: 'GrafanaAlerts', rules: [{ alert: 'A', expr: '%(threshold)s' % $._config, annotations: {} }] }] },
  prometheusRules+:: { groups+: [{ name: 'grafana_rules', rules: [{ record: 'a', expr: 'b' }] }] },
  grafanaDashboards+:: { 'grafana-overview.json': { title: 'x' } },
}
"""


def files_of(name: str, below: str) -> dict[str, bytes]:
    """Return the files of a directory of a mirror, by their paths in the repository; its largest files may be absent there."""
    assert MIRRORS is not None
    place = MIRRORS / name.replace("/", "+") / "repo"
    if not place.is_dir():
        pytest.skip(f"{name} isn't mirrored")
    command = ["git", "-C", str(place), "archive", "--format=tar", "HEAD", *([below] if below else [])]
    packed = subprocess.run(command, capture_output=True, check=False, timeout=60).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return {each.name: found.read() for each in archive if each.isfile() and (found := archive.extractfile(each))}


@pytest.fixture(scope="module")
def tree() -> FakeTree:
    if MIRRORS is None:
        pytest.skip("kube-prometheus isn't mirrored beside this checkout")
    files: dict[str, bytes | str] = {"main.jsonnet": files_of("prometheus-operator/kube-prometheus", "example.jsonnet")["example.jsonnet"]}
    own = "jsonnet/kube-prometheus"
    for path, data in files_of("prometheus-operator/kube-prometheus", own).items():
        files[f"vendor/kube-prometheus{path.removeprefix(own)}"] = data
    for name, below in LIBRARIES:
        files |= {f"vendor/github.com/{name}/{path}": data for path, data in files_of(name, below).items()}
    files["vendor/github.com/grafana/grafana/grafana-mixin/mixin.libsonnet"] = STAND_IN
    return FakeTree(files, {f"vendor/{name}": f"github.com/{place}" for name, place in LINKS.items()})


def test_its_example_renders(tree: FakeTree) -> None:
    with public_tools(), Sandbox() as sandbox:
        found = RENDERERS["jsonnet"].render(tree, RenderRequest("", options=RendererSettings("jsonnet")), sandbox)
    assert len(found.manifests) > 120
    assert "setup/0namespace-namespace" in found.keys
