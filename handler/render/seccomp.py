"""Which system calls a render child may still make: a seccomp filter, built once by the fork server, put on by each child.

Law: what isn't named is refused (EPERM: a library's attempt at something new fails and doesn't kill). Nothing named takes a path, makes a
descriptor, a process or shared memory, or reaches another process. Calls of another architecture (i386) kill.

By hand: the kept bindings need libseccomp.so, which neither slim images nor Lambda have; a test compares the kernel's headers.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass

RENDER = (
    *("read", "write", "close"),  # its pipe
    *("brk", "madvise", "mmap", "mprotect", "mremap", "munmap"),  # its memory
    *("clock_gettime", "futex", "getpid", "getrandom", "gettid", "restart_syscall", "sched_yield"),
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "exit", "exit_group"),
)
"""What functions in Python need that have loaded everything before."""
PLAIN = ("recvfrom", "sendto")
"""The same of its pipe, without flags: urgent data on such a socket (MSG_OOB) has been a way into the kernel (CVE-2025-38236)."""
ABORT = ("tgkill", "tkill")  # how C libraries end a broken process; only itself

_MACHINES = ("x86_64", "aarch64")
_NUMBERS = {
    "brk": (12, 214),
    "clock_gettime": (228, 113),
    "close": (3, 57),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "futex": (202, 98),
    "getpid": (39, 172),
    "getrandom": (318, 278),
    "gettid": (186, 178),
    "madvise": (28, 233),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "munmap": (11, 215),
    "read": (0, 63),
    "recvfrom": (45, 207),
    "restart_syscall": (219, 128),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "sendto": (44, 206),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "write": (1, 64),
}
"""Of each of these machines."""
_ARCHITECTURES = (0xC000_003E, 0xC000_00B7)  # the same in linux/audit.h

_Step = tuple[int, int, int, int]  # code, jump if true, jump if false, operand
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _FLAGS = 0, 4, 16, 40
"""Offsets in struct seccomp_data; of the arguments the lower half, for a process id, and flags, have no more."""
_ALLOW: _Step = (_RETURN, 0, 0, 0x7FFF_0000)
_REFUSE: _Step = (_RETURN, 0, 0, 0x0005_0001)  # EPERM
_KILL: _Step = (_RETURN, 0, 0, 0x8000_0000)


@dataclass(frozen=True, slots=True)
class Filter:
    """`head`: the program up to the calls that only a process itself may be the object of; `own`: their numbers."""

    head: bytes
    own: tuple[int, ...]

    def program(self, pid: int) -> bytes:
        """Return the whole program for a process."""
        steps: list[_Step] = []
        for number in self.own:
            steps += _only(number, _FIRST_ARGUMENT, pid)
        return self.head + _packed([*steps, _REFUSE])


def build(calls: Iterable[str] = RENDER, own: Iterable[str] = ABORT, machine: str = "") -> Filter | None:
    """Return the filter that allows these calls, PLAIN, and those of `own` on itself; None: the numbers of this machine aren't known."""
    machine = machine or os.uname().machine
    if sys.maxsize < 1 << 32 or machine not in _MACHINES:
        return None
    column = _MACHINES.index(machine)
    steps: list[_Step] = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, _ARCHITECTURES[column]), _KILL, (_LOAD, 0, 0, _NUMBER)]
    for name in calls:
        steps += [(_EQUAL, 0, 1, _NUMBERS[name][column]), _ALLOW]
    for name in PLAIN:
        steps += _only(_NUMBERS[name][column], _FLAGS, 0)
    return Filter(_packed(steps), tuple(_NUMBERS[name][column] for name in own))


def _only(number: int, argument: int, value: int) -> list[_Step]:
    """Allow a call where one of its arguments has this value, and refuse it where it hasn't."""
    return [(_EQUAL, 0, 4, number), (_LOAD, 0, 0, argument), (_EQUAL, 0, 1, value), _ALLOW, _REFUSE]


def _packed(steps: Iterable[_Step]) -> bytes:
    return b"".join(struct.pack("HBBI", *step) for step in steps)
