"""The row of jsonnet: 500 Deployments with ten variables each, made by one imported function; beside the bare program."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from handler.config.renderer_settings import RendererSettings
from handler.model.render import RenderRequest
from handler.render import RENDERERS
from handler.render.programs.private_directories import home
from handler.render.render_tools import DIRECTORY
from infra.bench.bed import Bed
from infra.bench.render_rows import fetched
from infra.bench.rows import Row, timed
from infra.renderers.build import binaries

_OBJECTS, _TIMES = 500, 3
_SANDBOX = 0.06
"""Seconds that the walls may take."""
_FILES = {
    "main.jsonnet": f"local web = import 'web.libsonnet';\n{{ ['web-%d' % n]: web(n) for n in std.range(1, {_OBJECTS}) }}\n",
    "web.libsonnet": """function(n)
  local name = 'web-%d' % n, labels = { app: name };
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: name, namespace: 'bench', labels: labels },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels: labels },
        spec: { containers: [{
          name: 'web',
          image: 'registry.example.com/web:%d' % n,
          ports: [{ containerPort: 8080 }],
          env: [{ name: 'VARIABLE_%d' % i, value: 'value %d of %d' % [i, n] } for i in std.range(0, 9)],
        }] },
      },
    },
  }
""",
}


def jsonnet(bed: Bed) -> Iterator[Row]:
    """A render by Google's program behind its walls, and the bare program."""
    tree = fetched(bed, _FILES)
    with patch.dict(os.environ, {DIRECTORY: str(binaries())}), tempfile.TemporaryDirectory(dir=home()) as place:
        for name, text in _FILES.items():
            (Path(place) / name).write_text(text)

        def render() -> None:
            found = RENDERERS["jsonnet"].render(tree, RenderRequest("deploy", options=RendererSettings("jsonnet")), bed.sandbox)
            if len(found.manifests) != _OBJECTS:
                raise RuntimeError(f"{len(found.manifests)} objects")

        def bare() -> None:
            subprocess.run([str(binaries() / "jsonnet"), "main.jsonnet"], cwd=place, check=True, capture_output=True)

        render()
        turns = [(timed(render)[0], timed(bare)[0]) for _ in range(_TIMES)]
        ours, go = (statistics.median(each) for each in zip(*turns, strict=True))
    figures = {"bare ms": go * 1000, "ours ms": ours * 1000}
    yield Row("jsonnet: 500 Deployments through one import, less 60 ms", (ours - _SANDBOX) / go, 1.1, "x the bare program", details=figures)
