"""Where actionlint and a small OCI registry come from: one build of go.mod's tools, in a cache of its own, made when a test asks.

Standard library only.
"""

from __future__ import annotations

from pathlib import Path

from infra.gobuild import Build, Log, report

MODULE = Path(__file__).resolve().parent


def binaries(*, log: Log = report) -> Path:
    """Return the directory that holds `actionlint` and `registry`, built first when the cache doesn't hold them. Raises BuildError."""
    return BUILD.ensure(log) / "bin"


BUILD = Build(name="release-tools", module=MODULE, what="actionlint and registry")

if __name__ == "__main__":
    print(binaries())
