"""What keeps a render child and its programs in, found by trying to get out: for `anneal doctor`. One file, so that both ends agree.

Law: an attempt that succeeds changes nothing, or is undone at once.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from handler.render.programs.program import Program, ProgramLimits

_LIBC = ctypes.CDLL(None, use_errno=True)
_IPC_RMID = 0
_NAMES = "make directories and links"  # what only a filter keeps a child from, wherever its user may


@dataclass(frozen=True, slots=True)
class SandboxWalls:
    """`seccomp`: the child's system calls are filtered; `can`: what it could do all the same, in words."""

    seccomp: bool
    can: tuple[str, ...]

    @classmethod
    def read(cls, frame: bytes) -> Self:
        """Read what a child found. Raises ValueError if it is something else."""
        match json.loads(frame):
            case {"seccomp": bool(seccomp), "can": [*can]} if all(isinstance(each, str) and each.isprintable() for each in can):
                return cls(seccomp, tuple(can))
        raise ValueError("not what a child finds")


def try_walls(options: Mapping[str, Any], _: Sequence[bytes]) -> Iterator[bytes]:
    """Try everything once, in a child. `options["worker"]`: process id of the handler; `options["memory"]`: bytes it may not have."""
    worker: int = options["worker"]
    attempts: Mapping[str, Callable[[], object]] = {
        "open files": lambda: os.close(os.open("/", os.O_RDONLY)),
        "open connections": lambda: socket.socket().close(),
        "start processes": _fork,
        "make shared memory": _share,
        "signal the handler": lambda: os.kill(worker, 0),
        "read the handler's memory": lambda: _peek(worker),
        "take more memory": lambda: bytearray(options["memory"]),
    }
    seccomp = _refused(lambda: os.mkdir("")) == errno.EPERM  # noqa: PTH102 - a path of no name, which is nowhere
    can = [what for what, attempt in attempts.items() if not _refused(attempt)]
    yield json.dumps({"seccomp": seccomp, "can": can if seccomp else [*can, _NAMES]}).encode()


def probe(worker: int) -> Program:
    """Return what has these walls tried where a program would be. `worker`: the handler's process id."""
    return Program("", (str(worker),), {}, limits=ProgramLimits(processes=2))  # it tries to start one


def try_program_walls(arguments: Sequence[str]) -> None:
    """Try everything once in a program's place, and write what was possible to standard output. `arguments`: the handler's process id."""
    worker = int(arguments[0])
    attempts: Mapping[str, Callable[[], object]] = {
        "open files": lambda: os.close(os.open("/", os.O_RDONLY)),
        "open connections": lambda: socket.socket().close(),
        "start processes": _fork,
        "make shared memory": _share,
        "signal the handler": lambda: os.kill(worker, 0),
        "read the handler's memory": lambda: _peek(worker),
    }
    os.write(1, json.dumps([what for what, attempt in attempts.items() if not _refused(attempt)]).encode())


def read_program_walls(_: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Hand on what was written there."""
    yield parts[0]


def decode_program_walls(frame: bytes) -> tuple[str, ...]:
    """Read it, in the worker. Raises ValueError if it is something else."""
    match json.loads(frame):
        case [*can] if all(isinstance(each, str) and each.isprintable() for each in can):
            return tuple(can)
    raise ValueError("not what a program finds")


def _refused(attempt: Callable[[], object]) -> int:
    """Return the number of the error; 0: there was none."""
    try:
        attempt()
    except OSError as refused:
        return refused.errno or errno.EPERM
    except (MemoryError, AttributeError):  # an attribute: this system has no such call
        return errno.ENOMEM
    return 0


def _fork() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _share() -> None:
    made = _LIBC.shmget(0, 4096, 0o600)
    if made == -1:
        raise OSError(ctypes.get_errno(), "shmget")
    _LIBC.shmctl(made, _IPC_RMID, None)


def _peek(worker: int) -> None:
    """Read the byte at address 0, which doesn't exist: the permission is checked first."""
    nowhere = (ctypes.c_size_t * 2)(0, 1)  # struct iovec
    if _LIBC.process_vm_readv(worker, nowhere, ctypes.c_ulong(1), nowhere, ctypes.c_ulong(1), ctypes.c_ulong(0)) == -1:
        number = ctypes.get_errno()
        if number != errno.EFAULT:
            raise OSError(number, "process_vm_readv")
