"""axe-core: what keeps people from using a page with a keyboard, a screen reader or weak eyes, found by its rules.

It is installed once from package-lock.json into the cache, outside the checkout, and put into a page by the browser's debugger: the
page's Content-Security-Policy stays as it is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from infra.gobuild import locked

_HERE = Path(__file__).resolve().parent
_FILES = (".npmrc", "package.json", "package-lock.json")
_RUN = "() => axe.run(document, {resultTypes: ['violations'], preload: false})"


def violations(page: Page) -> list[str]:
    """Return what axe finds on the page as it is now, a line for each element: rule and impact, element, what would help."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())
    found: list[dict[str, Any]] = page.evaluate(_RUN)["violations"]
    return [line for each in found for line in _lines(each)]


def _lines(violation: dict[str, Any]) -> list[str]:
    rule = f"{violation['id']} ({violation['impact']})"
    return [
        f"{rule} at {_target(node['target'])}: {violation['help']}. {' '.join(node['failureSummary'].split())}"
        for node in violation["nodes"]
    ]


def _target(path: list[str | list[str]]) -> str:
    """Write where an element is: a selector for each document or shadow root on the way."""
    return " ".join(each if isinstance(each, str) else " ".join(each) for each in path)


@cache
def _source() -> str:
    return library().read_text()


def library() -> Path:
    """Return the path of axe.min.js, installed now if the cache doesn't hold it; of several callers at once one does it.

    Raises:
        RuntimeError: npm isn't there, or can't install it.

    """
    cache_directory = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anneal" / "axe"
    place = cache_directory / hashlib.sha256((_HERE / "package-lock.json").read_bytes()).hexdigest()[:16]
    if not place.is_dir():
        cache_directory.mkdir(parents=True, exist_ok=True)
        with locked(cache_directory / "lock"):
            if not place.is_dir():
                _install(place)
    return place / "node_modules" / "axe-core" / "axe.min.js"


def _install(place: Path) -> None:
    """Install into a directory of its own and rename it when it is whole; package scripts don't run."""
    npm = shutil.which("npm")
    if not npm:
        raise RuntimeError("npm is needed to install axe-core and not on PATH: install Node 20.19 or newer (https://nodejs.org)")
    with tempfile.TemporaryDirectory(prefix=".install-", dir=place.parent) as temporary:
        work = Path(temporary) / "axe"
        work.mkdir()
        for name in _FILES:
            shutil.copy2(_HERE / name, work / name)
        command = [npm, "ci", "--prefix", str(work), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"npm ci: {done.stderr.strip()}")
        work.rename(place)
