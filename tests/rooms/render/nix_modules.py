"""Modules for the Nix renderer, what it makes of them, and what the bare tool makes of the same expressions."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from handler.config.renderer_settings import RendererSettings
from handler.config.settings_shape import Json
from handler.model.errors import ManifestInvalid, Problem
from handler.model.render import Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox, render_tools
from handler.render.render_tools import DIRECTORY
from infra.renderers import nix
from tests.fakes.source_tree import FakeTree
from tests.packing import ROOT
from tests.patience import PATIENCE

Files = Mapping[str, str]
NIXPKGS = ROOT / "tests" / "nixpkgs"
"""What stands for nixpkgs: see its files."""
LIB = {"nixpkgs/lib/default.nix": (NIXPKGS / "lib" / "default.nix").read_text()}
"""The same, vendored: the lib alone."""
NAMESPACE = '{ apiVersion = "v1"; kind = "Namespace"; metadata.name = "development"; }'


@contextmanager
def nix_tools() -> Iterator[Path]:
    """Let nix be found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DIRECTORY, str(nix.binaries()))
        yield nix.binaries()


def module(expression: str, name: str = "a") -> str:
    """Return a module with one ConfigMap; the expression stands in line 6."""
    return (
        f"{{ config, lib, pkgs, ... }}:\n{{\n  kubernixos.manifests.{name} = {{\n"
        f'    kind = "ConfigMap"; apiVersion = "v1"; metadata.name = "{name}";\n    data.x =\n      {expression};\n  }};\n}}\n'
    )


def settings(nix_path: Mapping[str, object] | None = None, **options: Any) -> RendererSettings:
    return RendererSettings("nix", nix_path=Json(json.dumps(nix_path) if nix_path else ""), **options)


def render(sandbox: Sandbox, files: Files, path: str = "deploy", links: Files | None = None, **options: Any) -> Rendered:
    """Render with the vendored lib, unless `nix_path` or `packages` name another."""
    given = LIB if "nix_path" not in options else {}
    return RENDERERS["nix"].render(FakeTree({**given, **files}, links), RenderRequest(path, options=settings(**options)), sandbox)


def refused(sandbox: Sandbox, files: Files, path: str = "deploy", **options: Any) -> Problem:
    """Return the one mistake."""
    with pytest.raises(ManifestInvalid) as caught:
        render(sandbox, files, path, **options)
    [problem] = caught.value.problems
    assert tempfile.gettempdir() not in str(problem)
    assert "anneal-programs-" not in str(problem)
    return problem


def value(sandbox: Sandbox, expression: str, files: Files | None = None, **options: Any) -> Any:
    """Return what an expression is in a manifest."""
    found = render(sandbox, {"deploy/kubernixos.nix": module(f"toString ({expression})"), **(files or {})}, **options)
    return found.manifests[0].body()["data"]["x"]


def reads(found: Rendered) -> set[str]:
    return {path for path, _ in found.reads.paths}


def bare(files: Files, expression: str, place: Path) -> Any:
    """Return what nix itself prints of an expression over the same files, without a wall and without our eval.nix."""
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    tool = render_tools.find("nix")
    environment = {**tool.environment, "HOME": str(place), "NIX_STATE_DIR": str(place / "state"), "NIX_CONF_DIR": str(place / "none")}
    command = [tool.path, *("--eval", "--strict", "--json", "--readonly-mode", "--store", "dummy://", "-E"), expression]
    done = subprocess.run(command, cwd=place, env=os.environ | environment, capture_output=True, check=True, timeout=PATIENCE)
    return json.loads(done.stdout)
