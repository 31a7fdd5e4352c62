"""kustomize, helm and sops as a clone finds them: what `scripts/renderers` has built, and nothing is built by surprise."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.renderers import build
from tests.packing import ROOT

PROGRAMS = ("kustomize", "helm", "sops")


def rows(place: Path, **environ: str) -> dict[str, dict[str, Any]]:
    """Return `scripts/anneal doctor`'s rows by subject, started elsewhere by a user who has set nothing."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(("ANNEAL_", "KUBECONFIG"))}
    command = [str(ROOT / "scripts" / "anneal"), "doctor", "-o", "json"]
    done = subprocess.run(command, cwd=place, env=given | environ, capture_output=True, text=True, check=False)
    return {row["subject"]: row for row in json.loads(done.stdout)["checks"]}


def test_the_command_line_of_a_clone_finds_what_its_script_has_built(renderers: Path, tmp_path: Path) -> None:
    said = subprocess.run([str(ROOT / "scripts" / "renderers")], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert Path(said.strip()) == renderers
    found = rows(tmp_path)
    assert {name: found[name]["seen"].partition(" ")[2] for name in PROGRAMS} == {name: f"({renderers}/{name})" for name in PROGRAMS}


def test_a_program_that_the_environment_names_is_preferred(renderers: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "helm").write_bytes((renderers / "helm").read_bytes())
    (tmp_path / "mine" / "helm").chmod(0o755)
    assert f"({tmp_path}/mine/helm)" in rows(tmp_path, ANNEAL_TOOLS=str(tmp_path / "mine"))["helm"]["seen"]


@pytest.mark.usefixtures("renderers")
def test_what_was_not_built_stays_so(tmp_path: Path) -> None:
    found = rows(tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert {found[name]["verdict"] for name in PROGRAMS} <= {"skipped", "ok"}  # ok: this machine has one of its own
    assert not (tmp_path / "cache" / "anneal" / build.BUILD.name).exists()
