"""Programs out of Debian's packages: downloaded once into the cache by apt's own ways, unpacked and not installed.

So nothing starts as a service, no user is made, root isn't needed, and the machine stays as it is. Used by tests.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path


@cache
def unpacked(name: str, packages: tuple[str, ...]) -> Path:
    """Return a directory with what is in some packages, unpacked for this process; it is removed at its end.

    `name`: of their place in the cache. Raises RuntimeError without apt, or when it can't download.
    """
    directory = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    for package in downloaded(name, packages):
        subprocess.run(["dpkg", "-x", str(package), str(directory)], check=True)
    directory.chmod(0o755)  # dpkg gives it the mode of the package's root
    return directory


def downloaded(name: str, packages: tuple[str, ...]) -> list[Path]:
    """Return the package files, each once however many processes ask; RuntimeError as above."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anneal" / name
    place.mkdir(parents=True, exist_ok=True)
    done = place / "done"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            if not shutil.which("apt-get"):
                raise RuntimeError(f"{name} can't be had without apt-get: run these tests on Debian or Ubuntu ({', '.join(packages)})")
            with tempfile.TemporaryDirectory(dir=place.parent) as temporary:
                _download(Path(temporary), packages)
                for package in Path(temporary).glob("archives/*.deb"):
                    package.replace(place / package.name)
            done.touch()
    return sorted(place.glob("*.deb"))


def _download(place: Path, packages: tuple[str, ...]) -> None:
    """Download into `place`; with package lists of our own when this machine has none."""
    (place / "archives" / "partial").mkdir(parents=True)
    (place / "lists" / "partial").mkdir(parents=True)
    ours = ["-o", f"Dir::Cache={place}", "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User="]
    get = ["install", "-qq", "-y", "--download-only", "--no-install-recommends", "--reinstall", *packages]
    if subprocess.run(["apt-get", *ours, *get], capture_output=True, check=False).returncode == 0:
        return
    ours += ["-o", f"Dir::State::lists={place}/lists"]
    for command in (["update", "-qq"], get):
        done = subprocess.run(["apt-get", *ours, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"apt-get {command[0]}: {done.stderr.strip()}")
