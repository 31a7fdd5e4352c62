"""Programs built once from the `tool` directives of a go.mod, and kept in a cache.

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

Log = Callable[[str], None]
Finish = Callable[[str, Path], None]


class BuildError(Exception):
    """What went wrong and what helps, ready to be shown."""


def _nothing_more(_go: str, _work: Path) -> None:
    """Leave the build as `go build` made it."""


@dataclass(frozen=True)
class Build:
    """The tools of one go.mod. `name` begins their cache's path, `what` and `takes` are printed while building.

    `packages`: compiled from an empty Go build cache; `parts`: what else decides how the result looks; `no_go`: said where Go is missing;
    `finish` is given the `go` program and the directory whose `bin` was just built.
    """

    name: str
    module: Path
    what: str
    takes: str
    packages: int
    no_go: str
    linker: str = "-s -w"
    parts: tuple[str, ...] = ()
    finish: Finish = _nothing_more

    @property
    def cache(self) -> Path:
        """The directory of builds."""
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(base) / "anneal" / self.name

    @property
    def key(self) -> str:
        """The hash of everything that decides what is built."""
        texts = (part.encode() for part in (self.linker, *self.parts))
        parts = ((self.module / "go.mod").read_bytes(), (self.module / "go.sum").read_bytes(), *texts)
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]

    def ensure(self, log: Log) -> Path:
        """Return the cached build, made now if it is missing; of several callers at once one builds and the others wait.

        Raises BuildError.
        """
        directory = self.cache / self.key
        if directory.is_dir():
            return directory
        go = shutil.which("go")
        if not go:
            raise BuildError(self.no_go)
        self.cache.mkdir(parents=True, exist_ok=True)
        with locked(self.cache / "build.lock", waiting=lambda: log("another build is under way: waiting for it")):
            if not directory.is_dir():
                self._build(go, directory, log)
        return directory

    def _build(self, go: str, directory: Path, log: Log) -> None:
        """Build into a directory of its own and rename it when it is whole. The lock is held."""
        for leftover in self.cache.glob(".build-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=".build-", dir=self.cache))
        try:
            self._compile(go, work / "bin", log)
            self.finish(go, work)
            work.chmod(0o755)
            work.rename(directory)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _compile(self, go: str, target: Path, log: Log) -> None:
        """Run `go build`, telling how far it is: 10 s apart, or on one line that is rewritten on a terminal."""
        command = [go, "build", "-v", "-buildvcs=false", "-ldflags", self.linker, "-o", f"{target}/", "tool"]
        interval = 0.2 if sys.stderr.isatty() else 10.0
        started = shown = time.monotonic()
        log(f"building {self.what} (once; {self.takes} on two cores from empty caches)")
        compiled, tail = 0, [""]
        with subprocess.Popen(command, cwd=self.module, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as build:
            for line in build.stderr or ():
                tail = [*tail[-19:], line.rstrip()]
                compiled += not line.startswith(("go:", "#"))
                now = time.monotonic()
                if now - shown >= interval:
                    shown = now
                    log(f"building {self.what}: {compiled:,} of about {self.packages:,} packages, {_minutes(now - started)}")
        if build.returncode:
            raise BuildError("`go build` failed (Go 1.26 or newer is needed):\n  " + "\n  ".join(tail))
        log(f"built {self.what} in {_minutes(time.monotonic() - started)}")


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


def _minutes(seconds: float) -> str:
    """Say a duration: 4 min 42 s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
