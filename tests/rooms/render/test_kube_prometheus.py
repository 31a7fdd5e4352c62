"""kube-prometheus as Google's bare program makes it, object by object; where its repository lies beside the checkout, as a bare mirror."""

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
    done = subprocess.run(
        [binaries() / "jsonnet", "-J", "vendor", "main.jsonnet"], cwd=place, capture_output=True, check=True, timeout=5 * PATIENCE
    )
    return [each for each in read_output(done.stdout, "main.jsonnet", given=False) if isinstance(each, Manifest)]


def compared(files: Mapping[str, bytes | str], place: Path) -> Rendered:
    """Render, and fail where the bare program makes other objects."""
    tree = FakeTree(files)
    with public_tools(), Sandbox() as sandbox:
        found = RENDERERS["jsonnet"].render(tree, RenderRequest("", options=RendererSettings("jsonnet")), sandbox)
    assert "//tool/jsonnet" in dict(found.reads.paths)
    assert list(found.manifests) == bare(files, place)
    return found


def test_its_components_are_the_same(tmp_path: Path) -> None:
    found = compared({**own_files(), "main.jsonnet": COMPONENTS}, tmp_path)
    assert len(found.manifests) > 40
    assert "setup/0namespace" in found.keys
