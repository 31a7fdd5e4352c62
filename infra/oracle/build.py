"""Where the oracle comes from, which answers as the reference implementation of each codec does (main.go): a build of its own go.mod.

`tests/nightly` asks it thousands of questions and compares ours. Standard library only.
"""

from __future__ import annotations

from pathlib import Path

from infra.gobuild import Build, Log, report

BUILD = Build(
    name="oracle",
    module=Path(__file__).resolve().parent,
    what="the oracle of the differential tests",
    packages=(".",),
    flags=("-trimpath",),
)


def oracle(*, log: Log = report) -> Path:
    """Return the program, built first when the cache doesn't hold it. Raises BuildError."""
    return BUILD.ensure(log) / "bin" / "oracle"


if __name__ == "__main__":
    print(oracle())
