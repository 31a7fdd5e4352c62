"""The directories that programs run in: one base of each sandbox, in it one directory of each run, removed when the run is over.

Law: a base is locked while its worker lives (flock), so that one of a dead worker is known and swept; only the owner's own real
directories are. Only root and the run's own user may enter a run's directory; all others may pass the base and not list it. Removal
takes any tree that a hostile program can leave, however deep, and follows no link.

They lie where the operator's TMPDIR says. Where it says nothing they lie in shared memory, if that has room: a thousand files take a disk
far longer than a render. Those of programs that are given what was decrypted lie in memory or nowhere.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator

from handler.model.errors import ProgramAbsent

PREFIX = "anneal-programs-"
MEMORY = "/dev/shm"  # noqa: S108 - where Linux has it; bases in it are made as those in any other directory for temporary files
ROOM = 2 << 30
"""Bytes that must be free in memory: four runs, each with all the space that a program may take."""

_CHOICE = ("TMPDIR", "TEMP", "TMP")
_NAMES = 200_000  # those of four runs
_PATIENCE = 10.0  # seconds in which a program that was killed during its run is gone
_PAUSE = 0.01
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PrivateDirectories:
    """Those of one sandbox. Threads may share it."""

    def __init__(self, *, memory: bool = False) -> None:
        """Make nothing before the first run. `memory`: on no disk."""
        self._memory = memory
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._base = ""
        self._held = -1

    @contextlib.contextmanager
    def one(self) -> Iterator[str]:
        """Make the directory of one run, and remove it with whatever is in it. Raises OSError; ProgramAbsent: no directory is in memory."""
        with self._lock:
            if not os.path.isdir(self._base):  # noqa: PTH112 - as below; what cleans up temporary files may have removed it
                self._unlock()
                _sweep()
                self._base, self._held = _locked_base(memory_home() if self._memory else home())
        place = f"{self._base}/run-{next(self._numbers)}"
        os.mkdir(place, 0o700)  # noqa: PTH102 - a string through and through: it goes to the child
        try:
            yield place
        finally:
            remove(place)

    def close(self) -> None:
        """Remove the base."""
        with self._lock:
            if self._base:
                remove(self._base)
            self._unlock()
            self._base = ""

    def _unlock(self) -> None:
        if self._held >= 0:
            os.close(self._held)
            self._held = -1


def _locked_base(parent: str) -> tuple[str, int]:
    """Make a base and lock it; where a sweep of another worker came between, make another."""
    while True:
        base = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
        os.chmod(base, 0o711)  # noqa: PTH101, S103 - as above; the runs' own users pass it
        held = _lock(base)
        with contextlib.suppress(FileNotFoundError):
            if held is not None and os.path.samestat(os.stat(base), os.fstat(held)):  # noqa: PTH116 - as above
                return base, held
        if held is not None:
            os.close(held)


def home() -> str:
    """Return the directory that bases are made in."""
    with contextlib.suppress(OSError):
        if not any(map(os.environ.get, _CHOICE)) and os.access(MEMORY, os.W_OK):
            found = os.statvfs(MEMORY)
            return MEMORY if found.f_bavail * found.f_frsize >= ROOM and found.f_favail >= _NAMES else tempfile.gettempdir()
    return tempfile.gettempdir()


def memory_home() -> str:
    """Return the directory in memory that bases are made in: the operator's, or shared memory. Raises ProgramAbsent: neither is."""
    for place in (tempfile.gettempdir(), MEMORY):
        if os.access(place, os.W_OK) and _in_memory(place):
            return place
    fix = (
        "set TMPDIR to a tmpfs; in Kubernetes: volumes: [{name: memory, emptyDir: {medium: Memory}}], volumeMounts: [{name: memory,"
        " mountPath: /dev/shm}]; docker run --tmpfs /dev/shm"
    )
    seen = f"would be given decrypted files or Secrets on disk: neither {tempfile.gettempdir()} nor {MEMORY} is in memory"
    raise ProgramAbsent.of("a program", seen, fix=fix)


def _in_memory(place: str) -> bool:
    """Whether the file system that a directory lies in is one that the kernel keeps in memory."""
    real, best = os.path.realpath(place), ("", "")
    with contextlib.suppress(OSError), open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as mounts:  # noqa: PTH123 - as below
        for line in mounts:
            _, mounted, kind, *_ = line.split(" ")
            where = mounted.encode("latin-1", "replace").decode("unicode_escape").rstrip("/")
            if (real == where or real.startswith(f"{where}/")) and len(where) >= len(best[0]):
                best = where, kind
    return best[1] in ("tmpfs", "ramfs")


def _lock(base: str) -> int | None:
    """Return a descriptor that holds the base's lock; None: another holds it, or it is gone or no directory."""
    try:
        descriptor = os.open(base, _DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _sweep() -> None:
    """Remove the bases of this user's dead workers, wherever one may have made them."""
    found: list[str] = []
    for place in {tempfile.gettempdir(), MEMORY}:
        with contextlib.suppress(FileNotFoundError, PermissionError), os.scandir(place) as entries:
            found += [entry.path for entry in entries if entry.name.startswith(PREFIX) and _ours(entry)]
    for base in found:
        held = _lock(base)
        if held is not None:
            remove(base)
            os.close(held)


def _ours(entry: os.DirEntry[str]) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    return False


def remove(place: str) -> None:
    """Remove a tree, also one that a dying process still adds to. What resists is left to the next sweep."""
    end = time.monotonic() + _PATIENCE
    while os.path.lexists(place):
        with contextlib.suppress(OSError):
            top = os.open(place, _DIRECTORY)
            try:
                _empty(top)
            finally:
                os.close(top)
            os.rmdir(place)  # noqa: PTH106 - as above
            return
        if time.monotonic() > end:
            return
        time.sleep(_PAUSE)


def _empty(top: int) -> None:
    """Remove all that is in a directory: the content of each directory below is moved up here first, so that depth costs nothing."""
    prefix, numbers = secrets.token_hex(), itertools.count()
    while names := _removed_files(top):
        for name in names:
            inner = os.open(name, _DIRECTORY, dir_fd=top)
            try:
                for below in _removed_files(inner):
                    os.rename(below, f"{prefix}-{next(numbers)}", src_dir_fd=inner, dst_dir_fd=top)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _removed_files(directory: int) -> list[str]:
    """Remove the files in a directory and return the names of its directories, which may be opened and moved then."""
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_directory in found:
        if not is_directory:
            os.unlink(name, dir_fd=directory)
        elif os.geteuid() != 0:
            os.chmod(name, 0o700, dir_fd=directory)
    return [name for name, is_directory in found if is_directory]
