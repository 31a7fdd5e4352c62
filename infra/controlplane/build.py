"""Where the control plane's programs come from: `KUBEBUILDER_ASSETS`, or one build of go.mod's tools, kept in a cache.

The cache lies outside the checkout, under a hash of go.mod, go.sum and the flags; a build goes to a directory of its own and is
renamed when it is whole, so that an interrupted one leaves nothing that could be taken for finished. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MODULE = Path(__file__).resolve().parent
VERSION = "v1.36.3"
VERSION_PACKAGE = "k8s.io/component-base/version"
# Without the version a server reports v0.0.0-master and clients misjudge its features.
LINKER = (
    f"-s -w -X {VERSION_PACKAGE}.gitVersion={VERSION} -X {VERSION_PACKAGE}.gitMajor=1 "
    f"-X {VERSION_PACKAGE}.gitMinor=36 -X {VERSION_PACKAGE}.gitTreeState=clean"
)
PACKAGES = 2470  # compiled from an empty Go build cache
KWOK = "sigs.k8s.io/kwok"
STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
ASSETS = ("etcd", "kube-apiserver", "kubectl")
PROGRAMS = (*ASSETS, "kube-controller-manager", "kube-scheduler", "kwok")
NO_GO = (
    "the control plane is built from Go modules and there is no `go` on PATH.\n"
    "  Install Go 1.26 or newer (https://go.dev/dl/), or set KUBEBUILDER_ASSETS to a directory that holds all of\n"
    f"  {', '.join(PROGRAMS)}; kwok's stages still need `go`."
)

Log = Callable[[str], None]


class ControlPlaneError(Exception):
    """What went wrong and what helps, ready to be shown."""


@dataclass(frozen=True)
class Tools:
    """The programs by name, and kwok's stages."""

    programs: dict[str, Path]
    stages: Path


def cache() -> Path:
    """Return the directory of builds and of the default instance."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "anneal" / "controlplane"


def tools(log: Log) -> Tools:
    """Return the programs to start, built first when the cache doesn't hold them.

    `KUBEBUILDER_ASSETS` gives etcd, kube-apiserver and kubectl, and whatever else lies there; the rest is the build's.
    """
    assets = _assets()
    built = ensure_built(log)
    return Tools({name: assets.get(name, built / "bin" / name) for name in PROGRAMS}, built / "stages.yaml")


def kubectl_directory(log: Log) -> Path:
    """Return the directory that holds kubectl of the server's own version."""
    return (_assets().get("kubectl") or ensure_built(log) / "bin" / "kubectl").parent


def ensure_built(log: Log) -> Path:
    """Return the cached build, made now if it is missing; of several callers at once one builds and the others wait."""
    directory = cache() / _key()
    if directory.is_dir():
        return directory
    go = shutil.which("go")
    if not go:
        raise ControlPlaneError(NO_GO)
    cache().mkdir(parents=True, exist_ok=True)
    with locked(cache() / "build.lock", waiting=lambda: log("another build is under way: waiting for it")):
        if not directory.is_dir():
            _build(go, directory, log)
    return directory


@contextlib.contextmanager
def locked(path: Path, *, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the file's lock; `waiting` is called once if another process holds it."""
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _assets() -> dict[str, Path]:
    """Return what `KUBEBUILDER_ASSETS` offers, by name."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if not given:
        return {}
    directory = Path(given).resolve()
    missing = [name for name in ASSETS if not os.access(directory / name, os.X_OK)]
    if missing:
        raise ControlPlaneError(f"KUBEBUILDER_ASSETS is {given}, but {', '.join(missing)} can't be run there. Unset it to build them.")
    return {name: directory / name for name in PROGRAMS if os.access(directory / name, os.X_OK)}


def _key() -> str:
    """Return the hash of everything that decides what is built."""
    parts = ((MODULE / "go.mod").read_bytes(), (MODULE / "go.sum").read_bytes(), LINKER.encode(), " ".join(STAGES).encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _build(go: str, directory: Path, log: Log) -> None:
    """Build into a directory of its own and rename it when it is whole. The lock is held."""
    for leftover in cache().glob(".build-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=".build-", dir=cache()))
    try:
        _compile(go, work / "bin", log)
        (work / "bin" / "server").rename(work / "bin" / "etcd")
        (work / "stages.yaml").write_text(_stages(go))
        work.chmod(0o755)
        work.rename(directory)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _compile(go: str, target: Path, log: Log) -> None:
    """Run `go build`, telling how far it is: 10 s apart, or on one line that is rewritten on a terminal."""
    command = [go, "build", "-v", "-buildvcs=false", "-ldflags", LINKER, "-o", f"{target}/", "tool"]
    interval = 0.2 if sys.stderr.isatty() else 10.0
    started = shown = time.monotonic()
    log("building the control plane (once; about 5 minutes on two cores from empty caches)")
    compiled, tail = 0, [""]
    with subprocess.Popen(command, cwd=MODULE, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as build:
        for line in build.stderr or ():
            tail = [*tail[-19:], line.rstrip()]
            compiled += not line.startswith(("go:", "#"))
            now = time.monotonic()
            if now - shown >= interval:
                shown = now
                log(f"building the control plane: {compiled:,} of about {PACKAGES:,} packages, {_minutes(now - started)}")
    if build.returncode:
        raise ControlPlaneError("`go build` failed (Go 1.26 or newer is needed):\n  " + "\n  ".join(tail))
    log(f"control plane built in {_minutes(time.monotonic() - started)}")


def _minutes(seconds: float) -> str:
    """Say a duration: 4 min 42 s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _stages(go: str) -> str:
    """Return kwok's stages, shipped in its module, as one stream of documents."""
    listed = subprocess.run([go, "list", "-m", "-f", "{{.Dir}}", KWOK], cwd=MODULE, capture_output=True, text=True, check=False)
    if listed.returncode:
        raise ControlPlaneError(f"`go list -m {KWOK}` failed:\n  {listed.stderr.strip()}")
    directory = Path(listed.stdout.strip()) / "kustomize" / "stage"
    return "---\n".join((directory / name).read_text().rstrip() + "\n" for name in STAGES)
