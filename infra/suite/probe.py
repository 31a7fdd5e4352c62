"""The switch of the mutants; goes into the copy of the checkout, as a module that the package imports first.

A process finds the test that started it by its parents: `@RESULTS@/now/<pid>` of pytest's process has its name, and that of the mutant that
is awake, if one is. A test may start what it likes, with whatever environment.
"""

from __future__ import annotations

import builtins
import contextlib
import fcntl
import os
from pathlib import Path

RESULTS = Path("@RESULTS@")
awake = ""
"""The name of the mutant that is awake."""
test = ""
"""The test that runs, in pytest's process; in what it has started, its name with a `*` before it."""
reached: set[str] = set()


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _started_by() -> tuple[str, str]:
    pid = os.getpid()
    with contextlib.suppress(OSError):  # a process without /proc reaches nothing that counts
        while pid > 1:
            now = RESULTS / "now" / str(pid)
            if now.exists():
                name, _, mutant = now.read_text().partition("\n")
                return f"*{name}", mutant
            pid = _parent(pid)
    return "", ""


def _mutant(name: str) -> bool:
    if awake:
        return name == awake
    if _log >= 0 and name not in reached:
        reached.add(name)
        with contextlib.suppress(OSError):  # a child that has closed what it doesn't need
            os.write(_log, f"{name}\t{test}\n".encode())
    return False


test, awake = _started_by()
try:
    _opened = os.open(RESULTS / "reached.tsv", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    _log = fcntl.fcntl(_opened, fcntl.F_DUPFD_CLOEXEC, 700)  # high, for a child that closes its own and opens others
    os.close(_opened)
except OSError:
    _log = -1
vars(builtins)["_mutant"] = _mutant  # every module of the copy asks for it by this name
