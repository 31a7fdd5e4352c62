"""What the document of Kubernixos shows: its wrapper, its module, its words; and a repository whose hostgroups are deployed so."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.in_process import ran
from tests.kubectl import Kubectl

ROOT = Path(__file__).resolve().parents[1]
SEED = ROOT.parent / "shared" / "seeds" / "kubernixos.txt"
"""The document, where it lies beside the checkout."""
WRAPPER = """\
if [ ! -f "$1" ]; then
  echo "Hostgroup $1 does not exist!" >&2
  exit 1
fi

export PACKAGES="(import $1).network.pkgs"
export MODULES="(import $1).network.modules"
shift

${upstream}/bin/kubernixos $@
"""
"""The script of the document's shell.nix, as Nix makes it but for its indent."""
EXAMPLE = """\
{
  kubernixos.manifests = [{
    kind = "Namespace";
    apiVersion = "v1";
    metadata = {
      name = "development";
      labels = {
        name = "development";
      };
    };
  }];
}
"""
"""The document's module."""
DEVELOPMENT: Mapping[str, Any] = {
    "kind": "Namespace",
    "apiVersion": "v1",
    "metadata": {"name": "development", "labels": {"name": "development"}},
}
PROGRAM = f"""\
if [ -n "$NOTES" ]; then
  printf '%s\\0' "$MODULES" "$PACKAGES" "$@" >"$NOTES"
  exit
fi
exec "{sys.executable}" -P -m handler kubernixos "$@"
"""
"""What the wrapper starts: ours, or what writes its variables and words into the file NOTES."""
_BLANKS = re.compile(r"\s+")


def words(text: str) -> str:
    """Return a text without what only lays it out."""
    return _BLANKS.sub(" ", text).strip()


@dataclass
class Hostgroups:
    """A repository of hostgroups, the document's wrapper, and where `kubernixos` looks for a cluster."""

    directory: Path
    kubeconfig: Path
    tools: Path

    def __post_init__(self) -> None:
        self.directory.mkdir(exist_ok=True)
        subprocess.run(["git", "init", "-q", str(self.directory)], check=True)
        shutil.copytree(ROOT / "tests" / "nixpkgs", self.directory / "nixpkgs", dirs_exist_ok=True)
        upstream = self.directory.parent / "upstream" / "bin"
        upstream.mkdir(parents=True, exist_ok=True)
        self._script(upstream / "kubernixos", PROGRAM)
        self.wrapper = self.directory.parent / "kubernixos"
        self._script(self.wrapper, WRAPPER.replace("${upstream}", str(upstream.parent)))

    @staticmethod
    def _script(path: Path, text: str) -> None:
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)

    def declare(self, name: str, *objects: Mapping[str, Any], module: str = "", **options: Any) -> str:
        """Write a hostgroup of these objects, or of a module; return its path."""
        (self.directory / "hostgroups").mkdir(exist_ok=True)
        written = json.dumps({"manifests": {str(index): each for index, each in enumerate(objects)}, **options})
        text = module or f"{{ kubernixos = builtins.fromJSON ''{written}''; }}"
        (self.directory / "hostgroups" / f"{name}-module.nix").write_text(text)
        group = f"{{ network = {{ pkgs = ../nixpkgs; modules = [ ./{name}-module.nix ]; }}; }}\n"
        (self.directory / "hostgroups" / f"{name}.nix").write_text(group)
        return f"hostgroups/{name}.nix"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the commands: nothing of this machine's but where programs are."""
        kept = {name: value for name, value in os.environ.items() if name not in ("ANNEAL_CONFIG", "NIX_PATH", "MODULES", "PACKAGES")}
        places = {"HOME": self.directory.parent, "KUBECONFIG": self.kubeconfig, "ANNEAL_TOOLS": self.tools, "PYTHONPATH": ROOT}
        return {**kept, **{name: str(place) for name, place in places.items()}}

    def ran(self, group: str, *line: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run the wrapper to its end, and what it starts in this process."""
        notes, command = self.wrapper.with_name("notes"), [str(self.wrapper), group, *line]
        notes.unlink(missing_ok=True)
        environ = {**self.environment, "NOTES": str(notes)}
        done = subprocess.run(command, cwd=self.directory, env=environ, capture_output=True, text=True, check=False)
        if notes.exists():
            modules, packages, *words = notes.read_text().split("\0")[:-1]
            done = self.program(*words, MODULES=modules, PACKAGES=packages)
        assert code in (None, done.returncode), f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def run(self, group: str, *line: str, code: int = 0) -> str:
        """Run the wrapper; return what it printed."""
        return self.ran(group, *line, code=code).stdout

    def program(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run what the wrapper starts in this process. `more`: of its environment."""
        return ran(["kubernixos", *words], {**self.environment, **more}, self.directory)

    def anneal(self, *line: str) -> str:
        """Run another command beside."""
        done = ran(line, self.environment, self.directory)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout


def by_original(kubectl: Kubectl, blob: str) -> None:
    """Deploy as the original does."""
    kubectl.run("apply", "-f", "-", given=blob)
