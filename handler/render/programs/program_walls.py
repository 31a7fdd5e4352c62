"""What stands around a program, put on by its process itself just before it becomes the program.

Law: each wall is tried, and what doesn't stand is reported; nothing of the handler is left: no variable, no descriptor but three, no
signal's treatment. Limits are those of one process, or of a user that no other process has, so that the handler's own threads never count.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from handler.model import prctl
from handler.render import seccomp
from handler.render.programs.landlock import restrict
from handler.render.programs.process_tree import counts_children

FILES = "of files (Landlock)"
CALLS = "of sockets and processes (seccomp)"
STARTS = "of what it starts (seccomp's listener, /proc)"

THREADS = 128
"""Of one process: Go starts one for each processor, and for each call that blocks."""
_SLACK = 4  # the watchdog names what exceeds it; the kernel's own bound, and that of processor time, come later
_DESCRIPTORS = 1024
_ADDRESSES = 64 << 30  # bytes, far above what Go takes: page tables are no resident memory
_PROCESSORS = 4
_MEMORY_SHARE = 0.85  # of its limit, from which Go's collector works harder
_GARBAGE = "200"  # per cent of what is in use, before it is collected: twice Go's own choice saves a seventh of the time


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a program starts. `order`: as the worker sent it; `home`: its files; `own`: what its variables name; `private`: its uid is.

    `executables`: open descriptors of the program, if there is one, of those that it may start and of its loader; `readable`: of what else
    it may read.
    """

    order: Mapping[str, Any]
    home: str
    own: str
    executables: Sequence[int]
    readable: Sequence[int]
    private: bool
    parent: int


def become(standing: Standing, streams: Sequence[int], report: socket.socket, instead: Callable[[Sequence[str]], None]) -> NoReturn:
    """Put on the walls and become the program. Never returns.

    `streams`: its three standard ones; `report`: gets the descriptor where each start of a thread or process is allowed,
    and as JSON what `lacks` and why it `failed`, and ends when it has begun; `instead`: what is done where there is no program.
    """
    lacks: list[str] = []
    try:
        order = standing.order
        arguments = [each.replace("{home}", standing.home) for each in order["arguments"]]
        environment = _environment(standing)
        _settle(standing, streams)
        lacks += _walls(standing, report)
        if not lacks or order["weak"]:
            _report(report, lacks)
            if not standing.executables:
                report.close()
                instead(arguments)
                os._exit(0)
            target = standing.executables[0] if os.execve in os.supports_fd else order["path"]
            os.execve(target, [order["path"], *arguments], environment)  # noqa: S606 - no shell is what is wanted
        _report(report, lacks)
    except OSError as refused:
        _report(report, lacks, str(refused.strerror))
    finally:
        os._exit(127)


def _report(report: socket.socket, lacks: Sequence[str], failed: str = "") -> None:
    os.write(report.fileno(), json.dumps({"lacks": lacks, "failed": failed}).encode() + b"\n")


def _settle(standing: Standing, streams: Sequence[int]) -> None:
    """Take the streams, the directory and the limits of the program."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them, and a program would go on to
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
    os.chdir(f"{standing.home}/{standing.order['directory']}")
    limits = standing.order["limits"]
    wanted = {
        resource.RLIMIT_CPU: limits["cpu"] + 1,
        resource.RLIMIT_FSIZE: limits["file"],
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _DESCRIPTORS,
        **({resource.RLIMIT_AS: _ADDRESSES} if sys.platform == "linux" else {}),
        **({resource.RLIMIT_NPROC: limits["processes"] * THREADS * _SLACK} if standing.private else {}),
    }
    for limit, value in wanted.items():
        hard = resource.getrlimit(limit)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (least, least))


def _walls(standing: Standing, report: socket.socket) -> list[str]:
    """Put up the walls that hold for good; return those that don't stand."""
    prctl.gain_no_privileges()
    prctl.die_with_parent(signal.SIGKILL)
    if os.getppid() != standing.parent:
        os._exit(127)
    places = [os.open(standing.order["place"], os.O_RDONLY)]
    null = os.open(os.devnull, os.O_RDWR)
    calls = (
        seccomp.build_program(starts=bool(standing.order["beside"]), libraries=bool(standing.order["loader"]))
        if sys.platform == "linux"
        else None
    )
    listener = prctl.report_calls(seccomp.build_starts()) if calls else -1
    if listener >= 0:
        socket.send_fds(report, [b"\n"], [listener])
    counted = not standing.order["beside"] or (listener >= 0 and counts_children())
    files = restrict(places, standing.executables, [null], standing.readable)
    filtered = bool(calls and prctl.filter_calls(calls.program(os.getpid())))
    return [name for name, stands in ((FILES, files), (CALLS, filtered), (STARTS, counted)) if not stands]


def _environment(standing: Standing) -> dict[str, str]:
    """Return all the variables that a program has: homes of its own, and bounds for Go's runtime."""
    own, limits = standing.own, standing.order["limits"]
    kinds = ("CACHE", "CONFIG", "DATA")
    given = standing.order["environment"].items()
    return {
        **dict.fromkeys(("HOME", "TMPDIR"), own),
        **{f"XDG_{kind}_HOME": f"{own}/{kind.lower()}" for kind in kinds},
        **{f"HELM_{kind}_HOME": f"{own}/{kind.lower()}/helm" for kind in kinds},
        "PATH": "",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "GOGC": _GARBAGE,
        "GOMEMLIMIT": f"{int(limits['memory'] * _MEMORY_SHARE / limits['processes'])}B",
        "GOMAXPROCS": str(min(_PROCESSORS, os.cpu_count() or 1)),
        **{name: value.replace("{home}", standing.home) for name, value in given},
    }
