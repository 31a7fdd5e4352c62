"""Where oauth2-proxy and dex come from, which sign people in to the page in tests: a build of go.mod's tools, kept in a cache of its own.

dex' go.mod names no second major version, so Go takes its tag v2.41.1 by a pseudo-version. Its SQLite, which needs a C compiler, is left
out. Standard library only.
"""

from __future__ import annotations

from pathlib import Path

from infra.gobuild import Build, LeftOut, Log, report

BUILD = Build(
    name="signin",
    module=Path(__file__).resolve().parent,
    what="oauth2-proxy and dex",
    left_out=(LeftOut("github.com/dexidp/dex", "storage/sql/sqlite.go", instead="sqlite/sqlite.go"),),
    flags=("-trimpath",),
)


def binaries(*, log: Log = report) -> Path:
    """Return the directory that holds `oauth2-proxy` and `dex`, built first when the cache doesn't hold them. Raises BuildError."""
    return BUILD.ensure(log) / "bin"


if __name__ == "__main__":
    print(binaries())
