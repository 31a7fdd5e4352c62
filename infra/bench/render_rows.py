"""The rows of the renderers: 500 Deployments among 1,000 files through each, beside the bare tool; one values file of 50 targets.

`bare` is the tool itself over the same files, which lie there already, on the file system where ours are written for each render. Files
have no tool: there it is the same reading without a child. The first render of a process is measured, and one that knows the last one's.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from handler.app.build import Handler
from handler.app.tables import Tables
from handler.config.git_settings import Repository
from handler.config.renderer_settings import RendererSettings
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Target
from handler.model.event import Job
from handler.model.render import Called, Rendered, RenderRequest
from handler.model.result import Outcome
from handler.model.tree import Tree
from handler.render import RENDERERS
from handler.render.functions import render_files
from handler.render.programs.private_directories import home
from handler.render.render_tools import DIRECTORY, find
from handler.source.git_host import GitHost
from infra.bench.bed import Bed
from infra.bench.objects import deployment
from infra.bench.rows import Row, timed
from infra.bench.sibling_rows import Counting
from infra.githost import Work
from infra.renderers import nix
from infra.renderers.build import binaries

_OBJECTS, _FILES, _TIMES = 500, 1000, 5
_RATIO, _FIXED = 1.3, 60.0
_TARGETS, _CHANGED = 50, 7
_CHART = "apiVersion: v2\nname: web\nversion: 0.1.0\n"
_TEMPLATE = """apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}", namespace: "{{ .Release.Namespace }}"}
data: {title: "{{ .Values.title }}"}
"""
_COMMANDS = {
    "kustomize": ("build", "."),
    "helm": ("template", "web", ".", "--include-crds"),
    "nix": (
        *("--eval", "--strict", "--json", "--readonly-mode", "--store", "dummy://", "-E"),
        "(import ./lib).evalModules { modules = [ ./own.nix ./kubernixos.nix ]; }",
        *("-A", "config.kubernixos.eval"),
    ),
}
_ROOT = Path(__file__).resolve().parents[2]
_OWN, _LIB = _ROOT / "handler" / "render" / "nix" / "kubernixos.nix", _ROOT / "tests" / "nixpkgs" / "lib" / "default.nix"
_OPTIONS: dict[str, RendererSettings] = {"nix": RendererSettings("nix", packages="{ lib = import ./lib; }")}
_NIX = """{
  kubernixos.manifests = builtins.listToAttrs (
    map (name: { inherit name; value = builtins.fromJSON (builtins.readFile (./. + "/${name}")); }) (
      builtins.filter (name: builtins.match ".*[.]json" name != null) (builtins.attrNames (builtins.readDir ./.))
    )
  );
}
"""
"""A module of all objects beside it; each is a file of its own, as in the rows of the others."""


def renderers(bed: Bed) -> Iterator[Row]:
    """500 Deployments through each renderer beside the bare tool, then what a child costs where there is next to nothing to render."""
    with patch.dict(os.environ, {DIRECTORY: f"{binaries()}:{nix.binaries()}"}):
        for name in ("file", "kustomize", "helm", "nix"):
            measured = _measured(bed, name, _OBJECTS, _FILES)
            ratio = (measured.ours - _FIXED) / measured.bare
            tool = "reading in this process" if name == "file" else f"bare {name}"
            yield Row(f"{name}: 500 Deployments, 1,000 files, less {_FIXED:.0f} ms", ratio, _RATIO, f"x {tool}", details=measured.figures())
        one = _measured(bed, "file", 1, 1)
        others = {f"{name} over bare ms": (found := _measured(bed, name, 1, 3)).ours - found.bare for name in _COMMANDS}
        yield Row("one object in a child, over reading it in this process", one.ours - one.bare, 25, "ms", details=others)


@dataclass(frozen=True, slots=True)
class _Measured:
    """Milliseconds. `ours`: a first render; `known`: one that knows the last one's; `bare`: the tool."""

    ours: float
    known: float
    bare: float

    def figures(self) -> dict[str, float]:
        """Return them for a row."""
        return {"ms": self.ours, "bare ms": self.bare, "ms where the last render is known": self.known}


def _measured(bed: Bed, name: str, objects: int, files: int) -> _Measured:
    """Time a renderer and its tool in turn over one commit."""
    texts = _tree(name, objects, files)
    tree = fetched(bed, texts)
    request = RenderRequest("deploy", called=Called("web", ("bench",)), options=_OPTIONS.get(name, RendererSettings(name)))
    ours, known, bare = [], [], []

    def render(asked: RenderRequest) -> Rendered:
        found = RENDERERS[name].render(tree, asked, bed.sandbox)
        if len(found.manifests) != objects:
            raise RuntimeError(f"{len(found.manifests)} objects")
        return found

    with _bare(name, texts) as run:
        first = render(request)
        for _ in range(_TIMES):
            bare.append(timed(run)[0])
            ours.append(timed(lambda: render(request))[0])
            known.append(timed(lambda: render(replace(request, known=first.files)))[0])
    return _Measured(*(statistics.median(each) * 1000 for each in (ours, known, bare)))


def _tree(name: str, objects: int, files: int) -> dict[str, str]:
    """Return the files of a directory with so many Deployments, one a file, by their paths in it."""
    folder = "templates/" if name == "helm" else ""
    ending = "json" if name == "nix" else "yaml"
    bodies = {f"{folder}web-{number}.{ending}": deployment(number, "bench") for number in range(objects)}
    texts = {path: json.dumps(body) if name == "nix" else yaml.safe_dump(body, sort_keys=False) for path, body in bodies.items()}
    marks: dict[str, dict[str, str]] = {
        "file": {},
        "kustomize": {"kustomization.yaml": "resources:\n" + "".join(f"- {path}\n" for path in texts)},
        "helm": {"Chart.yaml": _CHART, "values.yaml": "title: Tea\n"},
        "nix": {"kubernixos.nix": _NIX, "lib/default.nix": _LIB.read_text(), "own.nix": _OWN.read_text()},
    }
    whole = {**texts, **marks[name]}
    return whole | {f"files/{number}.txt": f"What is said of {number}.\n" * 20 for number in range(files - len(whole))}


def fetched(bed: Bed, texts: dict[str, str]) -> Tree:
    """Commit files below `deploy` and fetch them."""
    bed.count += 1
    name = f"rendered-{bed.count}"
    work = Work.of(bed.host, name)
    for path, text in texts.items():
        work.write(f"deploy/{path}", text)
    sha = work.commit("Bench")
    work.push()
    return GitHost(Repository(url=bed.host.url_of(name))).fetch(sha, "deploy")


@contextmanager
def _bare(name: str, texts: dict[str, str]) -> Iterator[Callable[[], Any]]:
    """Yield what runs the tool over the files, or reads them in this process."""
    manifests = {path: text.encode() for path, text in texts.items() if path.endswith(".yaml")}
    if name == "file":
        about = {"places": list(manifests), "rollout": "", "marks": [], "root": "deploy", "called": asdict(Called())}
        yield lambda: list(render_files(about, list(manifests.values())))
        return
    with tempfile.TemporaryDirectory(dir=home()) as place:
        for path, text in texts.items():
            file = Path(place) / path
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        tool = find(name)
        environment = {"HOME": place, "NIX_STATE_DIR": f"{place}/state", **tool.environment}
        command = [tool.path, *_COMMANDS[name]]
        yield lambda: subprocess.run(command, cwd=place, check=True, capture_output=True, env=os.environ | environment)


def values(bed: Bed) -> Iterator[Row]:
    """Fifty targets of one chart, each with a file of values of its own; one of these changes, and all of them hear of the push."""
    space, counting = bed.namespace(), Counting("helm")
    work = Work.of(bed.host, f"charts-{space}")
    repository = Repository(bed.host.url_of(f"charts-{space}"))
    targets = tuple(
        Target(
            f"{space}-{number}",
            repository,
            (space,),
            path="chart",
            renderer=RendererSettings("helm", values_files=(f"../values/{number}.yaml",)),
        )
        for number in range(_TARGETS)
    )
    handler = Handler(
        Settings(targets=targets, state_namespace=space),
        Secrets(),
        bed.sandbox,
        {"KUBECONFIG": str(bed.kubeconfig)},
        tables=Tables(renderers={**RENDERERS, "helm": counting}),
    )
    work.write("chart/Chart.yaml", _CHART)
    work.write("chart/templates/web.yaml", _TEMPLATE)
    for number in range(_TARGETS):
        work.write(f"values/{number}.yaml", "title: Tea\n")

    def pushed() -> dict[str, float]:
        """Push, run every target, and return the seconds of each."""
        work.commit("Values")
        work.push()
        counting.found.clear()
        return {target.name: _ran(handler, target.name) for target in targets}

    with patch.dict(os.environ, {DIRECTORY: str(binaries())}):
        pushed()
        work.write(f"values/{_CHANGED}.yaml", "title: Kettles\n")
        seconds = pushed()
    figures = {"its run s": seconds[targets[_CHANGED].name], "all runs s": sum(seconds.values())}
    yield Row("50 targets of one chart, one values file changed: renders", counting.found.total(), 1, "renders", details=figures)


def _ran(handler: Handler, name: str) -> float:
    """Run a target, and return the seconds it took."""
    seconds, result = timed(lambda: handler.run(Job(name, "push")))
    if result.outcome not in (Outcome.APPLIED, Outcome.UNCHANGED):
        raise RuntimeError(f"{result.outcome}: {result.message}")
    return seconds
