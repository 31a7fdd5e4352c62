"""Processes that are known again later: a PID together with the moment the kernel started it.

A PID alone may have been given to a stranger meanwhile; with boot id and start time (proc(5), field 22) it names one process for good.
Where there is no /proc, ps says when it was started, to the second. Standard library only.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

_LAZY = {"GOGC": "400"}
"""These servers live for minutes, on a machine with more memory than cores: their collector runs a quarter as often."""
_started: dict[int, tuple[subprocess.Popen[bytes], str]] = {}  # our own children: a parent must reap what has ended


@dataclass(frozen=True)
class Process:
    """One started program. `born`: boot id and start time."""

    name: str
    pid: int
    born: str


def start(name: str, command: list[str], log: Path) -> Process:
    """Start a program in a session of its own, so that an interrupted terminal doesn't reach it; its output goes to `log`."""
    environment = {**_LAZY, **os.environ}
    with log.open("wb") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", start_new_session=True, env=environment
        )
    process = Process(name, child.pid, born(child.pid))
    _started[child.pid] = child, process.born
    return process


@atexit.register
def _leave() -> None:
    """Let go of what goes on after this process: Popen warns of it, as of something forgotten."""
    for child, _ in _started.values():
        child.returncode = child.poll() or 0


def born(pid: int) -> str:
    """Return a token of this process, which no other with its PID had or will have; empty when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return "" if Path("/proc/self").exists() else _started_by_ps(pid)
    state, ticks = fields[0], fields[19]
    return "" if state in "ZX" else f"{boot}:{ticks}"  # a zombie has ended, though its parent hasn't reaped it


def _started_by_ps(pid: int) -> str:
    done = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = done.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else started.strip()


def alive(process: Process) -> bool:
    """Tell whether exactly this process still runs."""
    child, when = _started.get(process.pid, (None, ""))
    if child is None:
        return bool(process.born) and born(process.pid) == process.born
    if child.poll() is None:  # what /proc calls a zombie may be the first of several threads, and isn't reaped yet
        return process.born == when
    del _started[process.pid]
    return False


def stop(processes: list[Process], *, patience: float = 3.0) -> None:
    """End these processes and return when all have ended: asked first, then killed after `patience` seconds."""
    _signal(processes, signal.SIGTERM)
    if not _ended(processes, patience):
        _signal(processes, signal.SIGKILL)
        _ended(processes, 60.0)


def save(processes: list[Process], path: Path) -> None:
    """Write the record, whole or not at all."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps([asdict(process) for process in processes], indent=1))
    fresh.replace(path)


def load(path: Path) -> list[Process]:
    """Read the record; none or an unreadable one is an empty one."""
    try:
        return [Process(**entry) for entry in json.loads(path.read_text())]
    except (FileNotFoundError, ValueError, TypeError):
        return []


def _signal(processes: list[Process], number: signal.Signals) -> None:
    for process in processes:
        if alive(process):
            try:
                os.kill(process.pid, number)
            except ProcessLookupError:
                continue


def _ended(processes: list[Process], patience: float) -> bool:
    deadline = time.monotonic() + patience
    while [process for process in processes if alive(process)]:  # every one is looked at, so that every child is reaped
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
