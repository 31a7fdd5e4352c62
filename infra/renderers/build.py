"""Where kustomize, helm, jsonnet and sops come from: a build of go.mod's tools, kept in a cache of its own; sops has its own go.mod.

They are built apart from the control plane, so that their dependencies can't move Kubernetes', nor those of sops helm's. `ldflags` holds
what the linker is given, for infra/container/Dockerfile, too: their versions, and the minor version of Kubernetes that charts are rendered
for, as the control plane's; without it helm takes a cluster for v1.20. Nix is Debian's, see `nix`. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from infra.gobuild import Build, Log, report, this_machine
from infra.renderers import nix

MODULE = Path(__file__).resolve().parent
VARIABLE = "ANNEAL_TOOLS"
_TRIMPATH = ("-trimpath",)
"""Wherever they are built, they are the same bytes."""
SOPS = Build(name="sops", module=MODULE / "sops", what="sops", flags=_TRIMPATH)


def _with_sops(platform: str, _go: str, work: Path) -> None:
    """Lay sops beside the others: one directory holds every tool."""
    shutil.copy2(replace(SOPS, platform=platform).ensure(report) / "bin" / "sops", work / "bin")


BUILD = Build(
    name="renderers",
    module=MODULE,
    what="kustomize, helm, jsonnet and sops",
    linker=" ".join((MODULE / "ldflags").read_text().split()),
    flags=_TRIMPATH,
    parts=(SOPS.key,),
    finish=partial(_with_sops, ""),
)


def binaries(platform: str = "", *, log: Log = report) -> Path:
    """Return the directory that holds `kustomize`, `helm`, `jsonnet` and `sops`, built first when the cache doesn't hold them.

    `platform`: GOOS/GOARCH, e.g. linux/arm64; empty: this machine's. Raises BuildError.
    """
    if platform in ("", this_machine()):
        return BUILD.ensure(log) / "bin"
    what, finish = f"{BUILD.what} for {platform}", partial(_with_sops, platform)
    return replace(BUILD, what=what, platform=platform, finish=finish).ensure(log) / "bin"


def places() -> str:
    """Return where they lie once they are there, as ANNEAL_TOOLS takes it: these, and nix."""
    return os.pathsep.join(map(str, (BUILD.directory / "bin", nix.directory())))


def environment() -> dict[str, str]:
    """Return this process's environment, in which `anneal` finds them once they are built, unless it names others."""
    return {VARIABLE: places(), **os.environ}


if __name__ == "__main__":
    print(nix.binaries() if sys.argv[1:] == ["nix"] else binaries())
