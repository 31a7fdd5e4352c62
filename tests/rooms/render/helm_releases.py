"""A release of a test: a chart's files in, what the real helm makes of them out; charts and values from elsewhere are given."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler.config.renderer_settings import RendererSettings
from handler.config.settings_shape import Json
from handler.model.errors import OperatorError
from handler.model.outside_inputs import ChartReference, ClusterFacts, FetchedChart, NothingOutside, OutsideInputs
from handler.model.render import Called, Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox
from handler.render.render_tools import DIRECTORY
from infra.renderers.build import binaries
from tests.fakes.source_tree import FakeTree

CALLED = Called("web", ("shop", "jobs"))
CHART = "apiVersion: v2\nname: web\nversion: 0.1.0\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}}}\n"
HOOK = 'apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {0}\n  annotations: {{"helm.sh/hook": "{1}"}}\nspec: {{}}\n'
ECHO = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata:\n  seen: {{ .Values | toJson | quote }}\n"
"""A template that shows the values that it got."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox, with the repository's own helm as the one that is installed."""
    with pytest.MonkeyPatch.context() as patch, Sandbox() as sandbox:
        patch.setenv(DIRECTORY, str(binaries()))
        yield sandbox


FACTS = ClusterFacts("v1.36.3", ("shop.example.com/v1", "shop.example.com/v1/Till"))


@dataclass(frozen=True)
class Elsewhere(NothingOutside):
    """What isn't git, given by a test. `asked`: the charts that were fetched."""

    facts: ClusterFacts = FACTS
    objects: Mapping[tuple[str, str], Mapping[str, bytes]] = field(default_factory=dict)
    charts: Mapping[str, bytes] = field(default_factory=dict)
    asked: list[ChartReference] = field(default_factory=list)

    def ask(self, name: str) -> str:
        if name.startswith("//values/"):
            _, _, _, kind, key = name.split("/")
            return digest(repr(self.objects.get((kind, key))).encode())
        return digest(f"{self.facts}" if name.startswith("//cluster") else name)

    def cluster(self) -> ClusterFacts:
        return self.facts

    def values(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        return self.objects.get((kind, name))

    def chart(self, reference: ChartReference) -> FetchedChart:
        self.asked.append(reference)
        name = reference.name or reference.url.rpartition("/")[2]
        if name not in self.charts:
            raise OperatorError.of(f"chart {name}", "isn't among those of the test", place=reference.place)
        return FetchedChart(reference, "1.2.3", digest(self.charts[name]), self.charts[name])


def digest(data: bytes | str) -> str:
    return f"sha256:{hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()}"


def options(*, values: Mapping[str, Any] | None = None, assigned: Mapping[str, Any] | None = None, **others: Any) -> RendererSettings:
    """Return the settings of a renderer as configuration makes them. `assigned`: those of `set`."""
    texts = [Json("" if each is None else json.dumps(each)) for each in (values, assigned)]
    return RendererSettings("helm", values=texts[0], set=texts[1], **others)


def rendered(
    sandbox: Sandbox,
    files: Mapping[str, str | bytes],
    settings: RendererSettings | None = None,
    outside: OutsideInputs | None = None,
    links: Mapping[str, str] | None = None,
    **request: Any,
) -> Rendered:
    """Render the chart in `deploy`."""
    asked = RenderRequest(**{"path": "deploy", "called": CALLED, "options": settings, "outside": outside or Elsewhere(), **request})
    return RENDERERS["helm"].render(FakeTree(files, links), asked, sandbox)


def chart(files: Mapping[str, str | bytes], folder: str = "deploy") -> dict[str, str | bytes]:
    """Return the files of a chart in a directory, with a Chart.yaml of its own where none is given."""
    return {f"{folder}/{path}": data for path, data in {"Chart.yaml": CHART, **files}.items()}


def seen(found: Rendered, name: str = "web") -> Any:
    """Return the values that `ECHO` got."""
    body = next(each.body() for each in found.manifests if each.identity.name == name)
    return json.loads(body["data"]["seen"])


def names(found: Rendered) -> list[str]:
    return [str(each.identity) for each in found.manifests]


def packed(files: Mapping[str, str | bytes | tarfile.TarInfo]) -> bytes:
    """Return a .tgz; an entry that isn't a file of its bytes is given as tarfile has it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            raw = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(path)
            entry.size = len(raw)
            archive.addfile(entry, io.BytesIO(raw))
    return data.getvalue()


def by_helm(place: Path, files: Mapping[str, str | bytes], *arguments: str) -> list[Any]:
    """Return what helm itself prints of the chart in `deploy`, read by another YAML library."""
    for path, data in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data.encode() if isinstance(data, str) else data)
    command = [str(binaries() / "helm"), "template", "web", "./deploy", "--namespace", "shop", "--include-crds", *arguments]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True)
    return [each for each in yaml.load_all(done.stdout, Loader=yaml.CSafeLoader) if each]
