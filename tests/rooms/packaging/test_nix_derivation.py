"""`infra/nix`: the command line as a derivation, evaluated by nix over a stand-in of nixpkgs. It isn't built: that needs nixpkgs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from handler import __version__
from infra.renderers import nix
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
PKGS = """{
  path = "/nix/store/nixpkgs";
  nix = "/nix/store/nix";
  makeWrapper = "makeWrapper";
  python3Packages = {
    buildPythonApplication = made: made // { src = "source"; };
    setuptools = "setuptools";
    click = "click"; flask = "flask"; pyyaml = "pyyaml"; pyjwt = "pyjwt"; prometheus-client = "prometheus-client";
  };
}"""


@pytest.fixture
def derivation(tmp_path: Path) -> dict[str, Any]:
    """What would be built."""
    made: dict[str, Any] = evaluated(tmp_path, f"import {ROOT}/infra/nix {{ pkgs = {PKGS}; }}")
    return made


def evaluated(place: Path, expression: str) -> Any:
    program = nix.binaries() / "nix-instantiate"
    home = {"HOME": str(place), "NIX_STATE_DIR": str(place), "NIX_CONF_DIR": str(place), "NIX_STORE_DIR": "/nix/store"}
    libraries = {"LD_LIBRARY_PATH": str(program.resolve().parent.parent / "lib" / "nix")}
    command = [str(program), "--eval", "--strict", "--json", "--readonly-mode", "--store", "dummy://", "-E", expression]
    done = subprocess.run(command, env={**os.environ, **home, **libraries}, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_derivation_is_of_this_version_with_what_nixpkgs_has(derivation: dict[str, Any]) -> None:
    assert (derivation["pname"], derivation["version"]) == ("anneal-gitops", __version__)
    required = {
        re.split(r"[^A-Za-z0-9-]", line)[0].lower()
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if line and not line.startswith("#")
    }
    there = {"click", "flask", "pyyaml", "pyjwt", "prometheus-client"}
    assert set(derivation["dependencies"]) == there
    assert set(derivation["pythonRemoveDeps"]) == required - there


def test_kubernixos_has_the_nixpkgs_of_its_build_as_the_default_of_packages(derivation: dict[str, Any]) -> None:
    assert "$out/bin/kubernixos --add-flags kubernixos --set-default PACKAGES '/nix/store/nixpkgs'" in derivation["postInstall"]
    assert derivation["src"] == "source"


def test_another_default_can_be_given() -> None:
    with tempfile.TemporaryDirectory() as place:
        made = evaluated(Path(place), f'(import {ROOT}/infra/nix {{ pkgs = {PKGS}; packages = "/opt/nixpkgs"; }}).postInstall')
    assert "PACKAGES '/opt/nixpkgs'" in made
