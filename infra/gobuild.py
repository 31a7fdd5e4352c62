"""Programs built once from a go.mod, and kept in a cache.

The cache lies outside the checkout, under a hash of go.mod, go.sum, our own Go files and the flags; a build goes to a directory of its
own and is renamed when it is whole, so that an interrupted one leaves nothing that could be taken for finished. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from infra import goprogress
from infra.goprogress import BuildOrder, GoFailed, Log
from infra.gotrim import LeftOut, NothingToTrim

__all__ = ["Build", "BuildError", "LeftOut", "Log", "locked", "report", "this_machine"]

Finish = Callable[[str, Path], None]
_PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}


class BuildError(Exception):
    """What went wrong and what helps, ready to be shown."""


def report(message: str) -> None:
    """Tell on standard error how far it is: one line that is rewritten on a terminal, plain lines elsewhere."""
    end, clear = ("", "\r\x1b[K") if sys.stderr.isatty() else ("\n", "")
    sys.stderr.write(f"{clear}{message}{end}")
    sys.stderr.flush()


def _nothing_more(_go: str, _work: Path) -> None:
    """Leave the build as `go build` made it."""


@dataclass(frozen=True)
class Build:
    """The programs of one go.mod. `name` begins their cache's path, `what` is printed while building.

    `packages`: what is built, by default the tools of go.mod; `left_out`: what isn't compiled of other modules; `flags`: further ones of
    `go build`; `platform`: GOOS/GOARCH, empty: this machine's; `parts`: what else decides how the result looks; `otherwise`: what helps
    where Go is missing, beside its installation; `finish` is given the `go` program and the directory whose `bin` was just built.
    """

    name: str
    module: Path
    what: str
    otherwise: str = ""
    linker: str = "-s -w"
    packages: tuple[str, ...] = ("tool",)
    left_out: tuple[LeftOut, ...] = ()
    flags: tuple[str, ...] = ()
    platform: str = ""
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
        parts = (*goprogress.FLAGS, *self.flags, *filter(None, [self.platform]), *self.packages, *self.parts, *map(str, self.left_out))
        texts = (part.encode() for part in (self.linker, *parts))
        files = (self.module / "go.mod", self.module / "go.sum", *sorted(self.module.rglob("*.go")))
        return hashlib.sha256(b"\0".join((*(file.read_bytes() for file in files), *texts))).hexdigest()[:16]

    @property
    def directory(self) -> Path:
        """Where the build lies, once it is made."""
        return self.cache / self.key

    def ensure(self, log: Log) -> Path:
        """Return the cached build, made now if it is missing; of several callers at once one builds and the others wait.

        Raises BuildError.
        """
        directory = self.directory
        if directory.is_dir():
            return directory
        go = shutil.which("go")
        if not go:
            way = f"Install Go 1.26 or newer (https://go.dev/dl/){self.otherwise}"
            raise BuildError(f"there is no `go` on PATH, to build {self.what} from Go modules.\n  {way}.")
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
        began = time.monotonic()
        log(f"building {self.what} (once)")
        sources, what = self.cache / "sources", self.what
        order = BuildOrder(go, self.module, what, self.linker, self.packages, sources, self.left_out, self.flags, self.platform)
        try:
            goprogress.build(order, work / "bin", log)
            self.finish(go, work)
            work.chmod(0o755)
            work.rename(directory)
        except (GoFailed, NothingToTrim) as failure:
            raise BuildError(str(failure)) from failure
        finally:
            shutil.rmtree(work, ignore_errors=True)
        log(f"built {self.what} in {goprogress.duration(time.monotonic() - began)}")


def this_machine() -> str:
    """Return its platform as GOOS/GOARCH."""
    name = platform.machine().lower()
    return f"{sys.platform}/{_PROCESSORS.get(name, name)}"


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
