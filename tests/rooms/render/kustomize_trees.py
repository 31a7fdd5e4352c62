"""Trees of kustomizations, what our renderer makes of them, and what the bare tool makes of the same files."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handler.config.renderer_settings import RendererSettings
from handler.model.errors import ManifestInvalid, Problem
from handler.model.manifest import Manifest
from handler.model.render import Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox
from handler.render.documents import parse
from handler.render.render_tools import DIRECTORY
from infra.renderers.build import binaries
from tests.fakes.source_tree import FakeTree
from tests.patience import PATIENCE

Files = Mapping[str, str]


@contextmanager
def public_tools() -> Iterator[Path]:
    """Give the compiled programs where every user may run them: a program that root's sandbox starts runs as another."""
    directory = Path(tempfile.mkdtemp(prefix="anneal-test-tools-"))
    directory.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        try:
            for name in ("kustomize", "helm", "jsonnet", "sops"):
                try:
                    os.link(binaries() / name, directory / name)
                except OSError:
                    shutil.copy2(binaries() / name, directory / name)
            patch.setenv(DIRECTORY, str(directory))
            yield directory
        finally:
            shutil.rmtree(directory)


def config(name: str, **data: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {data or {'a': 'b'}}\n"


def deployment(name: str, image: str = "registry.example.com/web:1") -> str:
    return f"""apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
        - name: app
          image: {image}
          envFrom: [{{configMapRef: {{name: settings}}}}]
"""


def render(
    sandbox: Sandbox, files: Files, path: str = "deploy", links: Files | None = None, *, generate: bool = False, helm_charts: bool = False
) -> Rendered:
    request = RenderRequest(path, options=RendererSettings(generate=generate, helm_charts=helm_charts), weak=True)
    return RENDERERS["kustomize"].render(FakeTree(files, links), request, sandbox)


def asked(sandbox: Sandbox, files: Files, request: RenderRequest) -> Rendered:
    return RENDERERS["kustomize"].render(FakeTree(files), replace(request, weak=True), sandbox)


def refused(sandbox: Sandbox, files: Files, path: str = "deploy", *, helm_charts: bool = False) -> tuple[Problem, ...]:
    with pytest.raises(ManifestInvalid) as caught:
        render(sandbox, files, path, helm_charts=helm_charts)
    return caught.value.problems


def bare(files: Files, path: str, *flags: str) -> list[Any]:
    """Return what `kustomize build` prints, read as we read any file."""
    with tempfile.TemporaryDirectory() as directory:
        for name, text in files.items():
            file = Path(directory, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        command = [str(binaries() / "kustomize"), "build", str(Path(directory, path)), *flags]
        done = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE)
    return [value for _, value in parse(done.stdout, "bare.yaml") if value is not None]


def bodies(manifests: tuple[Manifest, ...]) -> list[Any]:
    return [manifest.body() for manifest in manifests]


CHART = {
    "Chart.yaml": "apiVersion: v2\nname: cache\nversion: 1.2.3\n",
    "values.yaml": "size: 1\n",
    "templates/config.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-cache\n  namespace: {{ .Release.Namespace }}\n"
        'data:\n  size: "{{ .Values.size }}"\n  home: "{{ .Values.home }}"\n'
    ),
}


def charted(folder: str, chart: Files = CHART) -> dict[str, str]:
    return {f"{folder}/{path}": text for path, text in chart.items()}


BASE = {
    "base/kustomization.yaml": (
        "resources: [web.yaml, service.yaml]\nconfigMapGenerator:\n- name: settings\n  literals: [level=info]\n  files: [motd=motd.txt]\n"
    ),
    "base/web.yaml": deployment("web"),
    "base/service.yaml": "# a comment\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
    "spec: {selector: {app: web}, ports: [{port: 80}]}\n",
    "base/motd.txt": "hello\n",
}
TREES: dict[str, tuple[Files, str, tuple[str, ...]]] = {
    "plain": ({"deploy/kustomization.yaml": "resources: [a.yaml]\n", "deploy/a.yaml": config("a")}, "deploy", ()),
    "root": ({"kustomization.yml": "resources: [a.yaml]\n", "a.yaml": config("a")}, "", ()),
    "overlay": (
        {
            **BASE,
            "over/prod/kustomization.yaml": (
                "namespace: shop\nnamePrefix: prod-\nnameSuffix: -eu\nresources: [../../base]\n"
                "labels:\n- pairs: {tier: front}\n  includeSelectors: true\ncommonAnnotations: {team: web}\n"
                "images: [{name: registry.example.com/web, newTag: '2'}]\nreplicas: [{name: web, count: 3}]\n"
                "configMapGenerator:\n- name: settings\n  behavior: merge\n  literals: [level=debug]\n"
            ),
        },
        "over/prod",
        (),
    ),
    "components": (
        {
            **BASE,
            "parts/tls/kustomization.yaml": (
                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [cert.yaml]\n"
                "patches:\n- path: patch.yaml\n  target: {kind: Deployment}\n"
            ),
            "parts/tls/cert.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: tls}\nstringData: {a: b}\n",
            "parts/tls/patch.yaml": "- {op: add, path: /metadata/annotations/tls, value: 'on'}\n",
            "over/kustomization.yaml": "resources: [../base]\ncomponents: [../parts/tls]\n",
        },
        "over",
        (),
    ),
    "patches": (
        {
            **BASE,
            "over/kustomization.yaml": (
                "resources: [../base]\npatchesStrategicMerge:\n- merge.yaml\n- |-\n  apiVersion: v1\n  kind: Service\n"
                "  metadata: {name: web}\n"
                "  spec: {type: NodePort}\npatchesJson6902:\n- target: {version: v1, kind: Service, name: web}\n  path: json.yaml\n"
                "patches:\n- patch: |-\n    - {op: replace, path: /spec/replicas, value: 4}\n  target: {kind: Deployment}\n"
                "- path: remove.yaml\n"
            ),
            "over/merge.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {minReadySeconds: 7}\n",
            "over/json.yaml": "- {op: add, path: /spec/ports/-, value: {port: 81, name: other}}\n",
            "over/remove.yaml": "$patch: delete\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
        },
        "over",
        (),
    ),
    "replacements": (
        {
            **BASE,
            "over/kustomization.yaml": "resources: [../base]\nreplacements: [{path: swap.yaml}]\n",
            "over/swap.yaml": (
                "source: {kind: Service, name: web, fieldPath: spec.ports.0.port}\ntargets:\n- select: {kind: Deployment}\n"
                "  fieldPaths: [spec.minReadySeconds]\n  options: {create: true}\n"
            ),
        },
        "over",
        (),
    ),
    "plugins": (
        {
            "deploy/kustomization.yaml": (
                "resources: [a.yaml]\ngenerators:\n- gen.yaml\n- ../more\ntransformers:\n- |-\n  apiVersion: builtin\n"
                "  kind: PrefixTransformer\n"
                "  metadata: {name: p}\n  prefix: pre-\n  fieldSpecs: [{path: metadata/name}]\n"
            ),
            "deploy/a.yaml": config("a"),
            "deploy/gen.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nname: g\nfiles: [data.txt]\n",
            "deploy/data.txt": "x\n",
            "deploy/more.txt": "y\n",
            "more/kustomization.yaml": "resources: [secret.yaml]\n",
            "more/secret.yaml": "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: s}\nname: s\nfiles: [more.txt]\n",
        },
        "deploy",
        (),
    ),
    "sorted": (
        {
            **BASE,
            "over/kustomization.yaml": (
                "resources: [../base, ns.yaml]\nsortOptions: {order: legacy, "
                "legacySortOptions: {orderFirst: [Namespace], orderLast: [Service]}}\n"
            ),
            "over/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
        },
        "over",
        (),
    ),
    "openapi": (
        {
            "deploy/kustomization.yaml": (
                "resources: [tea.yaml]\nopenapi: {path: schema.json}\ncrds: [schema.json]\npatches:\n"
                "- path: patch.yaml\nconfigurations: [names.yaml]\n"
            ),
            "deploy/tea.yaml": (
                "apiVersion: example.com/v1\nkind: Tea\nmetadata: {name: green}\nspec: {leaves: [{name: a, grams: 1}, "
                "{name: b, grams: 2}]}\n"
            ),
            "deploy/patch.yaml": "apiVersion: example.com/v1\nkind: Tea\nmetadata: {name: green}\nspec: {leaves: [{name: b, grams: 5}]}\n",
            "deploy/names.yaml": "namePrefix:\n- {path: metadata/name}\n",
            "deploy/schema.json": (
                '{"definitions": {"v1.Tea": {"type": "object", "properties": {"spec": {"type": "object", '
                '"properties": {"leaves": {"type": "array",'
                ' "items": {"type": "object"}, "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge"}}}},'
                ' "x-kubernetes-group-version-kind": [{"group": "example.com", "kind": "Tea", "version": "v1"}]}}}'
            ),
        },
        "deploy",
        (),
    ),
    "blocks": (
        {
            "deploy/kustomization.yaml": "resources: [a.yaml]\n",
            "deploy/a.yaml": "---\n".join(
                f"apiVersion: example.com/v1\nkind: Tea\nmetadata: {{name: a{number}}}\nspec:\n  z: {style}\n    text\n    ---\n\n"
                for number, style in enumerate(("|", "|-", "|+", ">", ">+", "|"))
            ),
        },
        "deploy",
        (),
    ),
    "metadata": (
        {
            "deploy/kustomization.yaml": "resources: [a.yaml]\nbuildMetadata: [originAnnotations, managedByLabel]\n",
            "deploy/a.yaml": config("a"),
        },
        "deploy",
        (),
    ),
    "capitals": ({"deploy/Kustomization": "Resources: [a.yaml]\nNamePrefix: x-\n", "deploy/a.yaml": config("a")}, "deploy", ()),
    "chart": (
        {
            **charted("deploy/charts/cache"),
            "deploy/kustomization.yaml": (
                "namespace: shop\nhelmCharts:\n- name: cache\n  releaseName: main\n  valuesFile: values.yaml\n  valuesInline: {size: 9}\n"
                "  kubeVersion: 1.30.0\n  apiVersions: [example.com/v1]\n"
            ),
            "deploy/values.yaml": "home: here\n",
        },
        "deploy",
        ("--enable-helm", "--helm-command", str(binaries() / "helm")),
    ),
}
"""Name -> files, the path that is built, and the flags that the bare tool needs."""
