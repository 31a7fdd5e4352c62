"""The functions' package as tests make it: by scripts/package itself."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ISOLATED = [sys.executable, "-I", "-S"]
"""A Python that sees its standard library and what it is told, nothing that is installed here."""


def package(out: Path, *options: str) -> Path:
    """Make a package. Raises AssertionError with what the script said."""
    done = subprocess.run([ROOT / "scripts" / "package", *options, "-o", out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@cache
def unpacked(place: Path, *options: str) -> Path:
    """Make a package for this machine and unpack it below a directory, once."""
    out = package(place / "host.zip", "--platform", "host", *options)
    directory = place / "task"
    with zipfile.ZipFile(out) as archive:
        archive.extractall(directory)
    return directory
