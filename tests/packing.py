"""The functions' package as tests make it: by scripts/package itself, each kind once a session, whichever of xdist's workers asks first."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SESSION = "ANNEAL_TEST_CONTROL_PLANE"  # the session's directory, which its workers share and its end removes
ISOLATED = [sys.executable, "-I", "-S"]
"""A Python that sees its standard library and what it is passed, nothing that is installed here."""


def package(out: Path, *options: str) -> Path:
    """Make a package. Raises AssertionError with what the script said."""
    done = subprocess.run([ROOT / "scripts" / "package", *options, "-o", out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@contextmanager
def once(name: str) -> Iterator[tuple[Path, bool]]:
    """Hold a directory of the session, and say whether it is new, so that it is filled once."""
    place = Path(os.environ[SESSION]) / "packages" / name
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        filled = place / "filled"
        yield place, not filled.exists()
        filled.touch()


def host() -> tuple[Path, Path]:
    """Return the package for this machine, and where it is unpacked."""
    with once("host") as (place, new):
        if new:
            with zipfile.ZipFile(package(place / "host.zip", "--platform", "host")) as archive:
                archive.extractall(place / "task")
    return place / "host.zip", place / "task"
