"""What a program and all that it started take of the machine, as `/proc` has it, and what they have left in their directory.

Law: a process that ends meanwhile counts for nothing; what can't be looked into counts as too much.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

_PROC = Path("/proc")
DEEPEST = 100
"""Directories below each other that a program may leave, those that it was given among them."""
_TIMES, _THREADS, _RESIDENT = slice(11, 15), 17, 21  # fields of proc(5)'s `stat`, counted from the state
_BLOCK = 512  # bytes: what st_blocks counts


@dataclass(frozen=True, slots=True)
class Usage:
    """`memory`: resident bytes; `seconds`: of processors, with those of processes that have ended."""

    memory: int = 0
    seconds: float = 0.0
    processes: int = 0
    threads: int = 0


def usage(parent: int, first: int, *, alone: bool, most: int) -> Usage:
    """Return what one child takes, and unless it is `alone` every other process below the parent. Elsewhere than on Linux: nothing.

    `most`: no more processes are looked at than one above that: a fork bomb grows faster than it can be walked.
    """
    if not _PROC.is_dir():
        return Usage()
    rows = list(islice((row for pid in ([first] if alone else _below(parent)) if (row := _stat(pid))), most + 1))
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    return Usage(
        memory=sum(row[_RESIDENT] for row in rows) * page,
        seconds=sum(sum(row[_TIMES]) for row in rows) / ticks,
        processes=len(rows),
        threads=sum(row[_THREADS] for row in rows),
    )


def _stat(pid: int) -> list[int]:
    """Return the fields of a process, also of one that has ended, each at its number in proc(5) less three; none: it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - a hundred times a second
        state, *fields = file.read().rpartition(b")")[2].split()
        row = [0, *map(int, fields)]
        if state == b"Z" and row[_THREADS] > 1:  # its first thread has ended, and the memory is counted where another one still has it
            row[_RESIDENT] = max(_resident(pid))
        return row
    return []


def _resident(pid: int) -> Iterator[int]:
    yield 0
    for task in _names(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/stat", "rb") as file:  # noqa: PTH123 - the same
            yield int(file.read().rpartition(b")")[2].split()[_RESIDENT])


def _below(parent: int) -> Iterator[int]:
    """Yield every process below one, however it is called now: what lost its parent is the supervisor's."""
    waiting = [parent]
    while waiting:
        pid = waiting.pop()
        for task in _names(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(_children(pid, task), "rb") as file:  # noqa: PTH123 - the same
                found = [int(child) for child in file.read().split()]
                waiting += found
                yield from found


def counts_children() -> bool:
    """Whether this kernel says which processes are below one (CONFIG_PROC_CHILDREN)."""
    return Path(_children(os.getpid(), os.getpid())).exists()


def _children(pid: int, task: int | str) -> str:
    return f"/proc/{pid}/task/{task}/children"


def _names(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)  # noqa: PTH208 - a hundred times a second
    return []


def space(place: str, entries: int, size: int) -> bool:
    """Whether a tree has more names or takes more bytes of the disk than it may."""
    waiting, names, taken = [(place, 0)], 0, 0
    try:
        while waiting:
            folder, depth = waiting.pop()
            for entry in _entries(folder):
                names += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, depth + 1))
                with contextlib.suppress(FileNotFoundError):
                    taken += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                if names > entries or taken > size or depth > DEEPEST:
                    return True
    except OSError:
        return True
    return False


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as found:
        yield from found
