"""kube-prometheus as Google's bare program makes it, object by object; where its repositories lie beside the checkout, as bare mirrors.

Its `vendor/` is put together of them as jsonnet-bundler would. Of what isn't mirrored (Grafana's own mixin) a line stands in its place.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from handler.config.renderer_settings import RendererSettings
from handler.model.manifest import Manifest
from handler.model.render import Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox
from handler.render.jsonnet.jsonnet_output import read_output
from infra.renderers.build import binaries
from tests.fakes.source_tree import FakeTree
from tests.patience import PATIENCE
from tests.rooms.render.kustomize_trees import public_tools

MIRRORS = next((found for each in Path(__file__).parents if (found := each / ".mirror").is_dir()), None)
NAME = "prometheus-operator/kube-prometheus"
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
COMPONENTS = """
local kube = (import 'kube-prometheus/main.libsonnet') + { values+:: { common+: { namespace: 'monitoring' } } };
{ 'setup/0namespace': kube.kubePrometheus.namespace } +
{
  [component + '-' + name]: kube[component][name]
  for component in ['blackboxExporter', 'kubernetesControlPlane', 'nodeExporter', 'prometheusAdapter', 'prometheus', 'alertmanager']
  for name in std.objectFields(kube[component])
  if name != 'prometheusRule'
}
"""
"""What of it needs no other repository."""
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
    packed = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return {each.name: found.read() for each in archive if each.isfile() and (found := archive.extractfile(each))}


def own_files() -> dict[str, bytes | str]:
    """Return kube-prometheus' own files, as a dependency."""
    if MIRRORS is None:
        pytest.skip("kube-prometheus isn't mirrored beside this checkout")
    own = "jsonnet/kube-prometheus"
    return {f"vendor/kube-prometheus{path.removeprefix(own)}": data for path, data in files_of(NAME, own).items()}


def bare(files: Mapping[str, bytes | str], place: Path) -> list[Manifest]:
    """Return what the bare program makes of these files, by the reader that the renderer has."""
    for path, data in files.items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data if isinstance(data, bytes) else data.encode())
    for name, leads in LINKS.items():
        (place / "vendor" / name).symlink_to(f"github.com/{leads}")
    done = subprocess.run(
        [binaries() / "jsonnet", "-J", "vendor", "main.jsonnet"], cwd=place, capture_output=True, check=True, timeout=5 * PATIENCE
    )
    return [each for each in read_output(done.stdout, "main.jsonnet", given=False) if isinstance(each, Manifest)]


def compared(files: Mapping[str, bytes | str], place: Path) -> Rendered:
    """Render, and fail where the bare program makes other objects."""
    tree = FakeTree(files, {f"vendor/{name}": f"github.com/{leads}" for name, leads in LINKS.items()})
    with public_tools(), Sandbox() as sandbox:
        found = RENDERERS["jsonnet"].render(tree, RenderRequest("", options=RendererSettings("jsonnet")), sandbox)
    assert "//tool/jsonnet" in dict(found.reads.paths)
    assert list(found.manifests) == bare(files, place)
    return found


def test_its_components_are_the_same(tmp_path: Path) -> None:
    found = compared({**own_files(), "main.jsonnet": COMPONENTS}, tmp_path)
    assert len(found.manifests) > 40
    assert "setup/0namespace" in found.keys


def test_its_example_is_the_same(tmp_path: Path) -> None:
    files = {**own_files(), "main.jsonnet": files_of(NAME, "example.jsonnet")["example.jsonnet"]}
    for name, below in LIBRARIES:
        files |= {f"vendor/github.com/{name}/{path}": data for path, data in files_of(name, below).items()}
    files["vendor/github.com/grafana/grafana/grafana-mixin/mixin.libsonnet"] = STAND_IN
    found = compared(files, tmp_path)
    assert len(found.manifests) > 120
    assert "setup/0namespace-namespace" in found.keys
