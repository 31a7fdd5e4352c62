"""Where kapp comes from, which `scripts/bench --peers` measures beside Anneal: one build of go.mod's tools, kept in a cache of its own.

Built apart from the control plane, so that its dependencies can't move Kubernetes'. Standard library only.
"""

from __future__ import annotations

from pathlib import Path

from infra.gobuild import Build, Log, report

MODULE = Path(__file__).resolve().parent
KAPP = "v0.64.2"
BUILD = Build(
    name="peers",
    module=MODULE,
    what="kapp",
    otherwise=", or leave out --peers",
    linker=f"-s -w -X carvel.dev/kapp/pkg/kapp/version.Version={KAPP.removeprefix('v')}",
)


def kapp(*, log: Log = report) -> Path:
    """Return the program, built first when the cache doesn't hold it. Raises BuildError."""
    return BUILD.ensure(log) / "bin" / "kapp"


if __name__ == "__main__":
    print(kapp())
