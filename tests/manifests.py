"""Anneal's own manifests in both forms, as the programs that people use make them: kustomize's overlays, and the chart."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from infra.renderers.build import binaries
from tests.patience import PATIENCE

KUBERNETES = Path(__file__).resolve().parent.parent / "infra" / "kubernetes"
CHART = KUBERNETES / "chart"
OVERLAYS = KUBERNETES / "overlays"
NAMES = ("single-namespace", "cluster-wide", "sqs-workers")
NAMESPACE = "anneal-system"

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Forms:
    """One overlay. `place`: a directory to work in."""

    overlay: str
    place: Path

    @property
    def files(self) -> Path:
        """Where its anneal.yaml, rbac.yaml and values.yaml are."""
        return OVERLAYS / self.overlay

    def kustomize(self, *components: str, change: str = "") -> str:
        """Build the overlay. `components`: more of ours; `change`: lines of a kustomization on top of it."""
        if not components and not change:
            return built(self.overlay)
        self.place.mkdir(exist_ok=True)
        added = [self._relative(KUBERNETES / "components" / name) for name in components]
        lines = {"resources": [self._relative(self.files)], "components": added}
        (self.place / "kustomization.yaml").write_text(yaml.safe_dump(lines) + change)
        return run("kustomize", "build", str(self.place))

    def helm(self, *options: str) -> str:
        """Render the chart with the overlay's values and files."""
        files = [f"--set-file=config={self.files / 'anneal.yaml'}", f"--set-file=rbac={self.files / 'rbac.yaml'}"]
        return template(f"--values={self.files / 'values.yaml'}", *files, *options)

    def _relative(self, path: Path) -> str:
        return os.path.relpath(path, self.place)  # kustomize takes no absolute path


@cache
def built(overlay: str) -> str:
    """Build an overlay as it is."""
    return run("kustomize", "build", str(OVERLAYS / overlay))


def template(*options: str) -> str:
    """Render the chart as a release `anneal` in its namespace."""
    return run("helm", "template", "anneal", str(CHART), f"--namespace={NAMESPACE}", *options)


def run(program: str, *arguments: str) -> str:
    """Run kustomize or helm and return what it printed; it must succeed."""
    done = tried(program, *arguments)
    assert done.returncode == 0, f"{program} {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def tried(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run kustomize or helm, which may fail."""
    return subprocess.run([str(binaries() / program), *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE)


def documents(text: str) -> list[Manifest]:
    """Parse a stream."""
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


def by_name(found: Sequence[Manifest]) -> dict[tuple[str, str, str], Manifest]:
    """Return objects by kind, namespace and name; none may occur twice."""
    named = {(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one for one in found}
    assert len(named) == len(found)
    return named


def one(found: Sequence[Manifest], kind: str, name: str = "anneal") -> Manifest:
    """Return the object of a kind and name."""
    (only,) = [each for each in found if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return only
