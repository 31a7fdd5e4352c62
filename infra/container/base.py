"""What stands in for the base image, which lies in a registry: the same Debian from debootstrap, its own Python at the image's place.

It is close and it isn't the same: Python is Debian's build (3.11 too) and lies under /usr, and nothing says that a later base image
still works. The wheels are the lock file's, fetched by pip beforehand: the build itself has no network.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from infra.container.tools import ContainerError, cache_place, overlaid

SUITE = "bookworm"
INCLUDED = ("ca-certificates", "netbase", "python3", "python3-pip", "tzdata")
"""What python:3.11-slim-bookworm has beside the minimum, as far as it matters here."""
VERSION = "3.11"
UNNEEDED = ("var/lib/apt/lists", "var/cache", "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info")
"""The slim images leave it out as well."""


def root() -> Path:
    """Return the stand-in's root directory, made once. Raises ContainerError."""
    made = cache_place() / f"base-{key()}"
    if made.is_dir():
        return made
    work = Path(tempfile.mkdtemp(prefix=".base-", dir=cache_place()))
    try:
        tree = work / "tree"
        options = ["--variant=minbase", f"--include={','.join(INCLUDED)}"]
        overlaid("debootstrap", *options, SUITE, str(tree), network=True)
        for each in UNNEEDED:
            shutil.rmtree(tree / each, ignore_errors=True)
        found = (tree / "usr" / "bin" / "python3").resolve().name
        if found != f"python{VERSION}":
            raise ContainerError(f"{SUITE} has {found}, and the image is made for Python {VERSION}")
        for name in ("python", "python3"):
            (tree / "usr" / "local" / "bin" / name).symlink_to("/usr/bin/python3")
        tree.rename(made)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return made


def key() -> str:
    """Return the hash of everything that decides what the stand-in is."""
    return digest([SUITE, platform.machine(), *INCLUDED, *UNNEEDED])


def wheels(locks: Sequence[Path]) -> Path:
    """Return a directory with every wheel of some lock files, checked against their hashes; fetched once. Raises ContainerError."""
    made = cache_place() / f"wheels-{digest([platform.machine(), *(lock.read_text() for lock in locks)])}"
    if made.is_dir():
        return made
    work = Path(tempfile.mkdtemp(prefix=".wheels-", dir=cache_place()))
    try:
        _run(sys.executable, "-m", "venv", str(work / "pip"))
        for lock in locks:
            _run(str(work / "pip" / "bin" / "pip"), *_download(work / "found"), "--requirement", str(lock))
        (work / "found").rename(made)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return made


def _download(place: Path) -> list[str]:
    """Return pip's arguments: wheels for the image's platform and Python, whatever ours are."""
    machine = platform.machine()
    platforms = [f"--platform=manylinux{each}_{machine}" for each in ("2014", "_2_17", "_2_28")]
    abis = [f"--abi={each}" for each in ("cp311", "abi3", "none")]
    wanted = [f"--python-version={VERSION}", "--implementation=cp", *platforms, *abis]
    return ["download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:", *wanted, f"--dest={place}"]


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ContainerError(f"{' '.join(command[:3])}: {(done.stderr or done.stdout).strip()[-3000:]}")


def digest(parts: Sequence[str]) -> str:
    """Return a short name for some texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
