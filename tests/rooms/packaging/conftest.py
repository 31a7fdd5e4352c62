"""What is distributed, made once: a clone without what a checkout collects, and a release that is built from this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clone import clone_to
from tests.packing import once

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clone_to(tmp_path_factory.mktemp("packaging") / "clone")


@pytest.fixture(scope="session")
def release() -> Path:
    """A directory with all that a release consists of, built once for all of xdist's workers."""
    with once("release") as (place, new):
        made = place / "dist"
        if new:
            done = subprocess.run(
                [ROOT / "scripts" / "release", "build", "--uncommitted", made], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="session")
def wheel(release: Path) -> Path:
    (found,) = release.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def sdist(release: Path) -> Path:
    (found,) = release.glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of a user's, outside of any checkout, below an empty home."""
    place = tmp_path_factory.mktemp("home") / "work"
    place.mkdir()
    return place


@pytest.fixture(scope="module")
def environ(foreign: Path) -> dict[str, str]:
    """The environment of a user who has installed nothing: an empty home, no virtual environment. Downloads alone are kept."""
    ours = {"HOME", "VIRTUAL_ENV", "PYTHONPATH", "KUBECONFIG", "COVERAGE_PROCESS_CONFIG"}
    kept = {name: value for name, value in os.environ.items() if name not in ours and not name.startswith(("XDG_", "ANNEAL_", "PIPX_"))}
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if ".venv" not in part)
    return kept | {
        "HOME": str(foreign.parent),
        "PATH": path,
        "PIP_CACHE_DIR": str(cache / "pip"),
        "UV_CACHE_DIR": str(cache / "uv"),
        "PIPX_DEFAULT_PYTHON": sys.executable,
    }
