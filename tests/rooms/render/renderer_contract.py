"""What every renderer owes, as data: one sample tree each. A new renderer is one row here; `test_renderer_contract` asks the same of all.

A sample is rendered at `deploy`. `broken`: the same with a mistake in it, which is reported at `place` in the tool's own words (`said`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.packing import ROOT

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RendererSample:
    """A tree for one renderer. `mark`: the file by which `type: auto` knows it; empty: it takes what no other does.

    `tool`: what renders it, where that isn't a program of the renderer's name.
    """

    renderer: str
    files: Files
    broken: Files
    place: str
    said: str
    mark: str = ""
    tool: str = ""


CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {text: hello}\n"
SECOND = CONFIG.replace("name: a", "name: b")
BASE = {"base/kustomization.yaml": "resources:\n- b.yaml\n"}
NIXLIB = {"nixpkgs/lib/default.nix": (ROOT / "tests" / "nixpkgs" / "lib" / "default.nix").read_text()}
MODULE = """{
  imports = [ ../common/b.nix ];
  kubernixos.manifests.a = { apiVersion = "v1"; kind = "ConfigMap"; metadata.name = "a"; data.text = "hello"; };
}
"""
OTHER = MODULE.replace("imports = [ ../common/b.nix ];", "").replace("manifests.a", "manifests.b").replace('name = "a"', 'name = "b"')
MAKES = "local one = import 'one.libsonnet';\n{ a: one('a'), b: import 'b.libsonnet', linked:: importstr 'link.yaml' }\n"
ONE = "function(name) { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: name }, data: { text: 'hello' } }\n"
PROGRAM = {"deploy/main.jsonnet": MAKES, "lib/one.libsonnet": ONE}
CHART = "apiVersion: v2\nname: web\nversion: 0.1.0\n"

SAMPLES = (
    RendererSample(
        "file",
        {"deploy/a.yaml": CONFIG, "deploy/b.yaml": SECOND},
        {"deploy/a.yaml": CONFIG, "deploy/b.yaml": "kind: ConfigMap\nmetadata: [\n"},
        "deploy/b.yaml:3",
        "did not find expected node content",
    ),
    RendererSample(
        "kustomize",
        {"deploy/kustomization.yaml": "resources: [a.yaml, ../base]\n", "deploy/a.yaml": CONFIG, **BASE, "base/b.yaml": SECOND},
        {"deploy/kustomization.yaml": "resources: [a.yaml, ../base]\n", "deploy/a.yaml": CONFIG, **BASE, "base/b.yaml": "a: b: c\n"},
        "base/kustomization.yaml:2",
        "mapping values are not allowed in this context",
        "kustomization.yaml",
    ),
    RendererSample(
        "helm",
        {"deploy/Chart.yaml": CHART, "deploy/templates/a.yaml": CONFIG, "deploy/templates/b.yaml": SECOND},
        {"deploy/Chart.yaml": CHART, "deploy/templates/a.yaml": CONFIG, "deploy/templates/b.yaml": "\n{{ .Values.a.b }}\n"},
        "deploy/templates/b.yaml:2",
        "nil pointer evaluating interface {}.b",
        "Chart.yaml",
    ),
    RendererSample(
        "nix",
        {**NIXLIB, "deploy/kubernixos.nix": MODULE, "common/b.nix": OTHER},
        {**NIXLIB, "deploy/kubernixos.nix": MODULE, "common/b.nix": OTHER.replace('"hello"', "\nhello")},
        "common/b.nix:4",
        "undefined variable 'hello'",
        "kubernixos.nix",
    ),
    RendererSample(
        "jsonnet",
        {**PROGRAM, "deploy/b.libsonnet": "(import 'one.libsonnet')('b')\n"},
        {**PROGRAM, "deploy/b.libsonnet": "local wrong = 1;\nerror 'no such region'\n"},
        "deploy/b.libsonnet:2:1",
        "no such region",
        "main.jsonnet",
        "jsonnet",
    ),
)
