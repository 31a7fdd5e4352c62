"""Where nix comes from in a clone and in tests: Debian's packages, unpacked in a cache and not installed.

`scripts/renderers nix` prints the directory of `nix-instantiate`. The packages are this machine's own release's, fetched by apt, which
checks their signatures: of bookworm nix-bin 2.8.0, of trixie 2.26. Beside nix-bin only what this machine lacks of its libraries is taken.
Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from infra.gobuild import BuildError, Log, locked, report

PACKAGE, PROGRAM = "nix-bin", "nix-instantiate"
_DEPENDS = re.compile(r"^\s+Depends: (lib[^\s<>]+)$", re.MULTILINE)
_MISSING = re.compile(r"^\t(\S+) => not found$", re.MULTILINE)
_SECONDS = 300.0
_ROUNDS = 4


def directory() -> Path:
    """Where the programs lie, once they are unpacked: one directory for each release of Debian.

    A render of root's runs as a user of its own, who must read nix' libraries, and root's home is closed.
    """
    base = os.environ.get("XDG_CACHE_HOME") or ("/var/cache" if os.geteuid() == 0 else Path.home() / ".cache")
    return Path(base) / "anneal" / "nix" / hashlib.sha256(_release().encode()).hexdigest()[:16] / "bin"


def binaries(log: Log = report) -> Path:
    """Return the directory that holds `nix-instantiate`, fetched first when the cache doesn't hold it. Raises BuildError."""
    made = directory()
    if made.is_dir():
        return made
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise BuildError("nix is unpacked from Debian's packages, and there is no apt-get and dpkg here.\n  Install nix on PATH.")
    cache = made.parents[1]
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "build.lock", waiting=lambda: log("another one fetches nix: waiting for it")):
        if not made.is_dir():
            _unpack(cache, made.parent, log)
    return made


def _release() -> str:
    return Path("/etc/os-release").read_text() if Path("/etc/os-release").exists() else sys.platform


def _unpack(cache: Path, place: Path, log: Log) -> None:
    """Unpack into a directory of its own and rename it when it is whole. The lock is held."""
    log("fetching nix from Debian (once)")
    work = Path(tempfile.mkdtemp(prefix=".build-", dir=cache))
    try:
        root, packages = work / "root", {PACKAGE}
        _fetch(packages, work, root)
        (work / "bin").mkdir()
        (work / "lib").mkdir()
        shutil.move(root / "usr" / "bin" / "nix", work / "bin" / "nix")
        (work / "bin" / PROGRAM).symlink_to("nix")
        if (root / "usr" / "lib" / "nix").is_dir():  # later ones have all of it in the program
            shutil.move(root / "usr" / "lib" / "nix", work / "lib" / "nix")
        (work / "lib" / "nix").mkdir(exist_ok=True)
        wanted = packages
        for _ in range(_ROUNDS):
            if not _missing(work):
                break
            wanted = {name for each in wanted for name in _depends(each)} - packages
            packages |= wanted
            _fetch(wanted, work, root)
            _take_libraries(root, work)
        if missing := _missing(work):
            raise BuildError(f"nix lacks {', '.join(missing)}, which Debian's packages don't hold here.")
        shutil.rmtree(root)
        work.chmod(0o755)
        work.rename(place)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _fetch(packages: set[str], work: Path, root: Path) -> None:
    """Download packages and unpack them."""
    debs = Path(tempfile.mkdtemp(dir=work))
    _run(["apt-get", "download", *sorted(packages)], debs)
    for deb in sorted(debs.glob("*.deb")):
        _run(["dpkg", "-x", str(deb), str(root)], work)
    shutil.rmtree(debs)


def _depends(package: str) -> list[str]:
    return _DEPENDS.findall(_run(["apt-cache", "depends", package], Path("/")))


def _take_libraries(root: Path, work: Path) -> None:
    """Copy libraries that the machine lacks to the directory of nix' own, where `handler.render.render_tools` has them looked for."""
    found = {each.name: each for each in root.rglob("*.so*") if each.is_file()}
    while taken := [name for name in _missing(work) if name in found]:
        for name in taken:
            shutil.copy(found[name], work / "lib" / "nix" / name)


def _missing(work: Path) -> list[str]:
    """Return the libraries that neither the machine nor the packages so far have; the machine's own stand first."""
    given = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_LIBRARY_PATH": str(work / "lib" / "nix")}
    done = subprocess.run(
        [str(work / "bin" / "nix"), "--version"], env=given, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    return sorted(set(_MISSING.findall(done.stdout)))


def _run(command: list[str], place: Path) -> str:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=_SECONDS)
    if done.returncode:
        raise BuildError(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return done.stdout
