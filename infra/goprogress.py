"""A `go build` that says how far it is: what it must compile is counted beforehand, and weighed for the time to go.

What makes it quicker: compilers write no debug information, which the linker would drop (`-dwarf=false`, a sixth of their time), and
collect no garbage, for they end before their memory matters; each keeps to one core where there are few; the standard library is compiled
while modules are still downloaded; files that drag in what nothing runs are left out. Code is optimised as usual. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

from infra.gotrim import LeftOut, trimmed

Log = Callable[[str], None]

FLAGS = ("-buildvcs=false", "-gcflags=all=-dwarf=false")
ENVIRONMENT = {"CGO_ENABLED": "0", "GOWORK": "off"}
"""`CGO_ENABLED=0`: as Kubernetes' and etcd's own releases are built; no C compiler is needed."""
DEFAULTS = {"GOGC": "off", "GOMEMLIMIT": "2GiB"}
"""What holds unless the environment says otherwise: a compiler collects only near the limit, which few packages come to."""
FEW = 7
"""Up to so many cores a compiler keeps to one, as many run beside it; where there are more, some packages are waited for by all others."""
STANDARD = ("net/http/httputil", "net/http/pprof", "html/template", "encoding/xml", "encoding/gob", "crypto/x509", "go/parser", "testing")
"""Of the standard library what all these programs use, with what lies below it."""
SMALLEST = 90_000
"""What starting a compiler costs, as bytes of source."""
LINKED = 3_000_000
"""What linking a program costs, as bytes of source."""
FIRST = 0.02
"""The part of the work after which its speed says something."""
QUIET = 10.0
LIVELY = 0.2
FORMAT = "{{.Stale}}\t{{.ImportPath}}\t{{.Name}}\t{{.DepOnly}}\t{{.Dir}}\t{{range .GoFiles}}{{.}},{{end}}"


class GoFailed(Exception):
    """The last lines that `go` said."""


@dataclass(frozen=True)
class BuildOrder:
    """What is built. `flags`: added to FLAGS; `platform`: GOOS/GOARCH, empty: this machine's."""

    go: str
    module: Path
    what: str
    linker: str
    packages: tuple[str, ...]
    sources: Path
    left_out: tuple[LeftOut, ...] = ()
    flags: tuple[str, ...] = ()
    platform: str = ""

    def command(self, verb: str, *more: str) -> list[str]:
        """Return a `go` command under the flags that decide what is stale."""
        return [self.go, verb, *FLAGS, *self.flags, "-ldflags", self.linker, *more]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that decide what is built."""
        system, _, processor = self.platform.partition("/")
        return {**ENVIRONMENT, **({"GOOS": system, "GOARCH": processor} if self.platform else {})}


def build(order: BuildOrder, target: Path, log: Log) -> None:
    """Build into the directory `target`. Raises GoFailed and NothingToTrim."""
    progress, shown = Progress(order.what), throttled(log)

    def show() -> None:
        shown(progress.line(time.monotonic()))

    def heard(*command: str) -> str:
        with GoCommand(order, list(command), progress.downloading) as running:
            return running.wait(show)

    parallel, environment = parallelism()
    with GoCommand(order, order.command("build", *parallel, "-v", *STANDARD), progress.started, environment) as standard:
        trim = trimmed(partial(heard, order.go), order.module, order.left_out, order.sources)
        listed = heard(*order.command("list", *trim, "-deps", "-f", FORMAT, *order.packages))
        progress.expect(listed, time.monotonic())
        with contextlib.suppress(GoFailed):  # what follows fails for the same reason, and says it
            standard.wait(show)
    whole = order.command("build", *parallel, *trim, "-v", "-o", f"{target}/", *order.packages)
    with GoCommand(order, whole, progress.started, environment) as compiling:
        compiling.wait(show)


def cores() -> int:
    """Return how many cores this process may use: a container or `taskset` may leave fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parallelism() -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the flags and the environment by which compilers share the cores; nothing where the environment sets it, or Go does better."""
    if cores() > FEW or "GOMAXPROCS" in os.environ or "-p" in os.environ.get("GOFLAGS", ""):
        return (), {}
    return (f"-p={cores()}",), {"GOMAXPROCS": "1"}


class GoCommand:
    """A running `go` command, each line of whose standard error is passed on; as a context it has ended at the end."""

    def __init__(self, order: BuildOrder, command: list[str], hear: Log, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        self._written = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            command,
            cwd=order.module,
            env={**DEFAULTS, **os.environ, **environment, **order.environment},
            stdin=subprocess.DEVNULL,
            stdout=self._written,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._tail: list[str] = []
        self._reader = threading.Thread(target=self._read, args=(hear,), daemon=True)
        self._reader.start()

    def __enter__(self) -> GoCommand:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # its compilers end with it
        self._reader.join()
        self._process.wait()
        self._written.close()

    def wait(self, show: Callable[[], None]) -> str:
        """Return what it wrote when it has succeeded; `show` is called again and again meanwhile. Raises GoFailed."""
        while self._reader.is_alive():
            self._reader.join(LIVELY)
            show()
        self._process.wait()
        if self._process.returncode:
            raise GoFailed("`go` failed (Go 1.26 or newer is needed):\n  " + "\n  ".join(self._tail))

        self._written.seek(0)
        return self._written.read()

    def _read(self, hear: Log) -> None:
        with self._process.stderr or nullcontext() as errors:
            for line in errors or ():
                self._tail = [*self._tail[-19:], line.rstrip()]
                hear(line.rstrip())


@dataclass
class Progress:
    """What is known of one build: `weights` of all that must be compiled, once it is listed, and what was begun of it."""

    what: str
    modules: int = 0
    weights: dict[str, int] = field(default_factory=dict)
    programs: int = 0
    begun: set[str] = field(default_factory=set)
    since: float = 0.0
    before: int = 0

    def downloading(self, line: str) -> None:
        """Take a line of `go list`."""
        self.modules += line.startswith("go: downloading ")

    def started(self, line: str) -> None:
        """Take a line of `go build -v`: the package that it begins to compile."""
        if line and not line.startswith(("go:", "#", "\t")):
            self.begun.add(line)

    def expect(self, listing: str, now: float) -> None:
        """Take a listing in FORMAT: what must be compiled. From now on the speed is measured."""
        self.weights = dict.fromkeys(self.begun.copy(), SMALLEST)
        for line in listing.splitlines():
            stale, package, name, dependency, directory, files = line.split("\t")
            if stale == "true" and package != "unsafe":  # which has nothing to compile
                self.weights[package] = SMALLEST + sum(_size(Path(directory, file)) for file in files.split(",") if file)
            self.programs += name == "main" and dependency == "false"
        self.since, self.before = now, self._done()

    def line(self, now: float) -> str:
        """Say how far it is."""
        if not self.weights:
            modules = f"downloading modules, {self.modules} so far" if self.modules else "looking at its modules"
            return f"building {self.what}: {modules}"
        begun, left = len(self.begun.copy() & self.weights.keys()), self.to_go(now)
        text = f"building {self.what}: {begun:,} of {len(self.weights):,} packages"
        if begun == len(self.weights):
            return f"{text}, linking"
        return text if left is None else f"{text}, about {duration(left)} to go"

    def to_go(self, now: float) -> float | None:
        """Return the seconds that the rest takes at the speed so far, or None while too little is done to say."""
        total, done = sum(self.weights.values()) + LINKED * self.programs, self._done()
        fresh = done - self.before
        if fresh < FIRST * total or now <= self.since:
            return None
        seconds = (total - done) * (now - self.since) / fresh
        step = 10 if seconds > 60 else 5
        return max(step, round(seconds / step) * step)

    def _done(self) -> int:
        return sum(self.weights.get(package, 0) for package in self.begun.copy())


def throttled(log: Log) -> Log:
    """Return what passes lines on: at once on a terminal, where one line is rewritten, and every ten seconds elsewhere."""
    interval, last = LIVELY if sys.stderr.isatty() else QUIET, time.monotonic()

    def show(line: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= interval:
            last = now
            log(line)

    return show


def duration(seconds: float) -> str:
    """Say a duration.

    >>> duration(100), duration(8.4)
    ('1 min 40 s', '8 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # generated while building
        return 0
