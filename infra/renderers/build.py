"""Where kustomize, helm and jsonnet come from: one build of go.mod's tools, kept in a cache of its own.

They are built apart from the control plane, so that their dependencies can't move Kubernetes'. `ldflags` holds what the linker is given,
for infra/container/Dockerfile, too: their versions, and the minor version of Kubernetes that charts are rendered for, as the control
plane's; without it helm takes a cluster for v1.20. Standard library only.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from infra.gobuild import Build, Log, report, this_machine

MODULE = Path(__file__).resolve().parent
VARIABLE = "ANNEAL_TOOLS"
BUILD = Build(
    name="renderers",
    module=MODULE,
    what="kustomize, helm and jsonnet",
    linker=" ".join((MODULE / "ldflags").read_text().split()),
    flags=("-trimpath",),  # wherever they are built, they are the same bytes
)


def binaries(platform: str = "", *, log: Log = report) -> Path:
    """Return the directory that holds `kustomize`, `helm` and `jsonnet`, built first when the cache doesn't hold them.

    `platform`: GOOS/GOARCH, e.g. linux/arm64; empty: this machine's. Raises BuildError.
    """
    if platform in ("", this_machine()):
        return BUILD.ensure(log) / "bin"
    return replace(BUILD, what=f"{BUILD.what} for {platform}", platform=platform).ensure(log) / "bin"


def environment() -> dict[str, str]:
    """Return this process's environment, in which `anneal` finds them once they are built, unless it names others."""
    return {VARIABLE: str(BUILD.directory / "bin"), **os.environ}


if __name__ == "__main__":
    print(binaries())
