"""A program that a render child runs before its function reads what it said: kustomize, helm, nix. Values, in the worker.

Law: the worker names files and executables; what the tree holds decides neither a path outside the private directory nor a variable.
What of the machine is readable is named by the operator: the program's own libraries, and directories that a target's settings list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import PurePosixPath
from typing import Any

MAX_EXPRESSION = 4096
"""Bytes: PIPE_BUF, what a pipe takes at once, so that the child never waits for the program to read it."""


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """Of one program with all that it starts, taken together where nothing else is said.

    `memory`: resident bytes; `cpu`, `seconds`: processor and wall time; `output`: bytes of standard output; `file`: bytes of any one file
    that it writes; `space`, `entries`: bytes and names below its directory, with the files that it was given; `processes`: how many run
    at once, each with at most 128 threads.
    """

    memory: int = 1 << 30
    cpu: int = 60
    seconds: float = 60.0
    output: int = 100 << 20
    file: int = 64 << 20
    processes: int = 1
    space: int = 512 << 20
    entries: int = 50_000


@dataclass(frozen=True, slots=True)
class Program:
    """What is run, over which files.

    `path`: the executable's, absolute; empty: none, the walls are tried. `arguments`: those after its name. `files`: path below the private
    directory -> index of its bytes among the call's parts; written as regular files, their directories made. `directory`: where it starts,
    below the private directory. `beside`: absolute paths of executables that it may start (kustomize starts helm); none: it starts no
    process. `environment`: added to the minimal one. `{home}` in an argument or in a variable's value is the private directory.
    `loader`: of a program that isn't static, absolute; `readable`: absolute paths of libraries and of directories that it may read.
    `expression`: what it waits for on standard input; it is started with its directories made, and gets this when all its files lie there.
    """

    path: str
    arguments: tuple[str, ...]
    files: Mapping[str, int]
    directory: str = ""
    beside: tuple[str, ...] = ()
    limits: ProgramLimits = ProgramLimits()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    loader: str = ""
    readable: tuple[str, ...] = ()
    expression: str = ""

    @property
    def name(self) -> str:
        """What errors call it."""
        return PurePosixPath(self.path).name or "the program"

    def order(self, place: str, *, weak: bool) -> Mapping[str, Any]:
        """Return what the child is sent. `place`: the run's directory.

        Raises ValueError for a path that leads elsewhere, and for an expression that is too long.
        """
        wrong = [path for path in (*self.files, *([self.directory] if self.directory else [])) if not is_plain_path(path)]
        wrong += [path for path in (self.path, self.loader, *self.beside, *self.readable) if path and not path.startswith("/")]
        if wrong:
            raise ValueError(f"no path for a program: {wrong[0]!r}")
        if len(self.expression.encode()) > MAX_EXPRESSION:
            raise ValueError(f"no expression for a program: it has more than {MAX_EXPRESSION:,} bytes")
        whole = {each.name: getattr(self, each.name) for each in fields(self)}  # asdict would copy each path
        return {**whole, "limits": asdict(self.limits), "place": place, "weak": weak}


def is_plain_path(path: str) -> bool:
    """Whether it is a relative path that stays below where it starts, in its plainest form."""
    return "\0" not in path and not {"", ".", ".."} & set(path.split("/"))
