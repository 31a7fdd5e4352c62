"""Packages of npm, installed once from a package-lock.json into the cache, outside the checkout; their scripts don't run.

An installation goes to a directory of its own and is renamed when it is whole. The second time nothing is asked of the network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from infra.gobuild import locked

_FILES = (".npmrc", "package.json", "package-lock.json")


def _left_as_it_is(_work: Path) -> None:
    """Keep the packages as npm has laid them."""


def installed(name: str, described: Path, finish: Callable[[Path], None] = _left_as_it_is, key: str = "") -> Path:
    """Return the directory that holds `node_modules`, or what `finish` made of it; of several callers at once one installs.

    `name`: of the place in the cache; `described`: the directory of package.json; `key`: what else decides how the result looks.

    Raises:
        RuntimeError: npm isn't there, or can't install it.

    """
    cache_directory = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anneal" / name
    digest = hashlib.sha256((described / "package-lock.json").read_bytes() + key.encode())
    place = cache_directory / digest.hexdigest()[:16]
    if not place.is_dir():
        cache_directory.mkdir(parents=True, exist_ok=True)
        with locked(cache_directory / "lock"):
            if not place.is_dir():
                _install(name, described, place, finish)
    return place


def _install(name: str, described: Path, place: Path, finish: Callable[[Path], None]) -> None:
    npm = shutil.which("npm")
    if not npm:
        raise RuntimeError(f"npm is needed to install {name} and not on PATH: install Node 20.19 or newer (https://nodejs.org)")
    with tempfile.TemporaryDirectory(prefix=".install-", dir=place.parent) as temporary:
        work = Path(temporary) / name
        work.mkdir()
        for file in _FILES:
            shutil.copy2(described / file, work / file)
        command = [npm, "ci", "--prefix", str(work), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"npm ci: {done.stderr.strip()}")
        finish(work)
        work.rename(place)
