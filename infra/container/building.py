"""Builds the Dockerfile as it is, with Buildah, on the stand-ins for its base images; the result is kept as a directory.

Every instruction is carried out by a builder that others deploy with. What a registry would add is missing: the base images themselves,
and their digests.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.container import base, golang
from infra.container.tools import cache_place, overlaid

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = "infra/container"
LOCKS = ("requirements.lock", f"{HERE}/function.lock")
MODULES = tuple(f"infra/renderers/{name}" for name in ("go.mod", "go.sum", "ldflags", "sops/go.mod", "sops/go.sum"))
CONTEXT = ("handler", f"{HERE}/anneal", f"{HERE}/Dockerfile", ".dockerignore", *LOCKS, *MODULES)
"""Everything that decides what the image is: .dockerignore lets nothing else in."""
BASE_IMAGE = f"docker.io/library/python:{base.VERSION}-slim-{base.SUITE}"
KEPT = 3600.0
"""Seconds that an unused image is kept."""
KEPT_PARTS = 4 * 24 * 3600.0
"""The same of what images are made of: wheels, base and layers of locks and suites that have moved on."""
MOST = 4 << 30
"""Bytes of layers; beyond that all are made anew. Each is kept for the next build: those of the dependencies are the slow ones."""


@dataclass(frozen=True, slots=True)
class Image:
    """A built image. `root`: its file system, read-only; `config`: entry point, user, environment, as the image says them."""

    root: Path
    config: dict[str, Any]

    def bytes(self, path: str) -> int:
        """Return how much a directory takes, each file once."""
        return size(self.root / path)


def size(path: Path) -> int:
    """Return the bytes of a directory, each file once."""
    return int(subprocess.run(["du", "-sb", str(path)], capture_output=True, text=True, check=True).stdout.split()[0])


def built(target: str) -> Image:
    """Return the image of a stage of the Dockerfile, built if anything it is made of has changed. Raises ContainerError."""
    place = cache_place()
    with (place / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = place / f"image-{target}-{_key()}"
        if not made.is_dir():
            _build(target, made)
        os.utime(made)
        _forget("image-*", KEPT)
    return Image(made / "root", json.loads((made / "config.json").read_text()))


def _key() -> str:
    files = [path for each in CONTEXT for path in _files(REPOSITORY / each)]
    contents = [f"{path.relative_to(REPOSITORY)} {path.stat().st_mode & 0o777:o} {path.read_bytes().hex()}" for path in files]
    return base.digest([base.key(), golang.version(), *contents])


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(each for each in path.rglob("*") if each.is_file() and "__pycache__" not in each.parts)


def _build(target: str, made: Path) -> None:
    """Build into a directory of its own and rename it when it is whole. The lock is held."""
    storage = _Storage()
    storage.have_bases()
    wheels = base.wheels([REPOSITORY / lock for lock in LOCKS])
    arguments = ("PIP_NO_INDEX=1", "PIP_FIND_LINKS=/wheels", *golang.OFFLINE)
    volumes = (f"{wheels}:/wheels:ro", *golang.volumes())
    offline = [*(f"--build-arg={each}" for each in arguments), *(f"--volume={each}" for each in volumes)]
    tag = f"localhost/anneal:{target}"
    file = f"--file={REPOSITORY / HERE / 'Dockerfile'}"
    form = ["--layers", "--pull-never", "--format=docker"]  # docker's: OCI's own knows no health check
    storage.buildah("bud", *form, f"--target={target}", f"--tag={tag}", file, *offline, str(REPOSITORY))
    work = Path(tempfile.mkdtemp(prefix=".image-", dir=cache_place()))
    try:
        storage.extract(tag, work)
        work.chmod(0o755)
        work.rename(made)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for used in (wheels, base.root(), storage.place):
        os.utime(used)
    for kind in ("wheels", "base", "storage"):
        _forget(f"{kind}-*", KEPT_PARTS)


class _Storage:
    """Buildah's images and layers, in the cache and nowhere else."""

    def __init__(self) -> None:
        self.place = cache_place() / f"storage-{base.key()}"
        if self.place.is_dir() and size(self.place) > MOST:
            shutil.rmtree(self.place)
        self.place.mkdir(exist_ok=True)
        files = {
            "storage.conf": f'[storage]\ndriver = "overlay"\nrunroot = "{self.place}/run"\ngraphroot = "{self.place}/layers"\n',
            "registries.conf": 'short-name-mode = "disabled"\n',
            "policy.json": json.dumps({"default": [{"type": "reject"}], "transports": {"containers-storage": {"": [_ANY]}}}),
        }
        for name, text in files.items():
            (self.place / name).write_text(text)
        self._environment = {
            "BUILDAH_ISOLATION": "chroot",
            "CONTAINERS_STORAGE_CONF": str(self.place / "storage.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(self.place / "registries.conf"),
        }

    def buildah(self, command: str, *arguments: str) -> str:
        """Run a command of Buildah, without network; return what it printed."""
        policy = [f"--signature-policy={self.place / 'policy.json'}"] if command in ("bud", "from", "commit") else []
        return overlaid("buildah", command, *policy, *arguments, environment=self._environment)

    def have_bases(self) -> None:
        """Make images of the stand-ins, under the base images' names."""
        if BASE_IMAGE not in self.buildah("images", "--format={{.Name}}:{{.Tag}}").split():
            text = "FROM scratch\nCOPY . /\nENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin\n"
            self._make(BASE_IMAGE, text, base.root())
        self._make(golang.IMAGE, golang.dockerfile(BASE_IMAGE), None)

    def _make(self, name: str, text: str, context: Path | None) -> None:
        with tempfile.TemporaryDirectory() as work:
            file = Path(work) / "Dockerfile"
            file.write_text(text)
            self.buildah("bud", "--layers", "--pull-never", f"--tag={name}", f"--file={file}", str(context or work))

    def extract(self, tag: str, work: Path) -> None:
        """Copy an image's file system and configuration."""
        container = self.buildah("from", "--pull-never", tag).strip()
        script = 'cp -a --reflink=auto "$(buildah mount "$0")" "$1"'  # one process tree: a mount is gone with its namespace
        overlaid("sh", "-c", script, container, str(work / "root"), environment=self._environment)
        self.buildah("rm", container)
        inspected = json.loads(self.buildah("inspect", "--type=image", tag))
        (work / "config.json").write_text(json.dumps(inspected["Docker"]["config"]))


_ANY = {"type": "insecureAcceptAnything"}


def _forget(names: str, kept: float) -> None:
    """Remove what hasn't been used for so many seconds. The lock is held."""
    for old in cache_place().glob(names):
        if time.time() - old.stat().st_mtime > kept:
            shutil.rmtree(old, ignore_errors=True)
