"""Which system calls a render child, and a program that it runs, may still make: seccomp filters, put on by each process itself.

Law: what isn't named is refused (EPERM: a library's attempt at something new fails and doesn't kill). Nothing named for a child takes a
path, makes a descriptor, a process or shared memory, or reaches another process. A program has files, which Landlock bounds, so that
nothing is named that Landlock doesn't see: modes, owners, times and attributes by path, watches, mounts. It has threads, no socket, and
no other process but where it may start one. What it takes can be counted: it shares no memory, removes no file and makes none without a
name. Calls of another architecture (i386) kill.

By hand: the kept bindings need libseccomp.so, which neither slim images nor Lambda have; a test compares the kernel's headers.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterable, Mapping
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
PROGRAM = (
    *(name for name in RENDER if name != "mmap"),
    *("arch_prctl", "sigaltstack", "sched_getaffinity", "nanosleep", "clock_nanosleep", "gettimeofday", "uname", "sysinfo", "getrusage"),
    *("mkdirat", "readlinkat", "faccessat", "faccessat2", "newfstatat", "fstat"),
    *("pread64", "pwrite64", "readv", "writev", "lseek", "ftruncate", "fsync", "fdatasync", "copy_file_range", "getdents64", "flock"),
    *("getcwd", "chdir", "fchdir", "dup", "dup3", "pipe2", "eventfd2", "epoll_create1", "epoll_ctl", "epoll_pwait"),
    *("getuid", "geteuid", "getgid", "getegid", "getppid"),
    *("execve", "execveat"),  # Landlock names what it may become
)
"""What static programs of Go need: threads, and files in their directory."""
LIBRARIES = ("set_robust_list", "set_tid_address", "rseq", "rt_sigtimedwait", "readlink")
"""The same of programs with the system's C library: its threads, one that waits for signals, and what is readlinkat elsewhere."""
START = ("wait4", "waitid")
"""The same where it may start another process."""
SIGNAL = ("tgkill", "kill")  # how Go's runtime stops a thread, and ends a broken process; only itself

_MACHINES = ("x86_64", "aarch64")
_NUMBERS: Mapping[str, tuple[int, int | None]] = {
    "arch_prctl": (158, None),
    "brk": (12, 214),
    "chdir": (80, 49),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "clone": (56, 220),
    "clone3": (435, 435),
    "close": (3, 57),
    "copy_file_range": (326, 285),
    "dup": (32, 23),
    "dup3": (292, 24),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_pwait": (281, 22),
    "eventfd2": (290, 19),
    "execve": (59, 221),
    "execveat": (322, 281),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "fchdir": (81, 50),
    "fcntl": (72, 25),
    "fdatasync": (75, 83),
    "flock": (73, 32),
    "fstat": (5, 80),
    "fsync": (74, 82),
    "ftruncate": (77, 46),
    "futex": (202, 98),
    "getcwd": (79, 17),
    "getdents64": (217, 61),
    "getegid": (108, 177),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getpid": (39, 172),
    "getppid": (110, 173),
    "getrandom": (318, 278),
    "getrusage": (98, 165),
    "gettid": (186, 178),
    "gettimeofday": (96, 169),
    "getuid": (102, 174),
    "kill": (62, 129),
    "lseek": (8, 62),
    "madvise": (28, 233),
    "mkdirat": (258, 34),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "munmap": (11, 215),
    "nanosleep": (35, 101),
    "newfstatat": (262, 79),
    "openat": (257, 56),
    "pipe2": (293, 59),
    "pread64": (17, 67),
    "prlimit64": (302, 261),
    "pwrite64": (18, 68),
    "read": (0, 63),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "readv": (19, 65),
    "recvfrom": (45, 207),
    "restart_syscall": (219, 128),
    "rseq": (334, 293),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigtimedwait": (128, 137),
    "sched_getaffinity": (204, 123),
    "sched_yield": (24, 124),
    "sendto": (44, 206),
    "set_robust_list": (273, 99),
    "set_tid_address": (218, 96),
    "sigaltstack": (131, 132),
    "sysinfo": (99, 179),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "uname": (63, 160),
    "wait4": (61, 260),
    "waitid": (247, 95),
    "write": (1, 64),
    "writev": (20, 66),
}
"""Of each of these machines; None: it has no such call."""
_ARCHITECTURES = (0xC000_003E, 0xC000_00B7)  # the same in linux/audit.h

_Step = tuple[int, int, int, int]  # code, jump if true, jump if false, operand
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_ARGUMENTS = (16, 24, 32, 40)
"""Offsets in struct seccomp_data; of the arguments the lower half: process ids, commands, signals and flags have no more."""
_ALLOW: _Step = (_RETURN, 0, 0, 0x7FFF_0000)
_REFUSE: _Step = (_RETURN, 0, 0, 0x0005_0001)  # EPERM
_UNKNOWN: _Step = (_RETURN, 0, 0, 0x0005_0026)  # ENOSYS: a C library then takes the older call
_HAND_OVER: _Step = (_RETURN, 0, 0, 0x7FC0_0000)
_KILL: _Step = (_RETURN, 0, 0, 0x8000_0000)

CLONE_THREAD = 0x1_0000
_CLONE_REFUSED = 0x7E02_8000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET; CLONE_PARENT
_TMPFILE, _SHARED = 0x40_0000, 1  # bits of O_TMPFILE, and of MAP_SHARED and MAP_SHARED_VALIDATE
_SIGURG = 23
"""Go's runtime interrupts its threads by it; who doesn't wait for it ignores it. A process that a program started has another id."""
_FCNTL = (*range(8), 1030, 36, 37, 38)
"""Duplicates, flags and locks; nothing that sends a signal to the owner of a descriptor (F_SETOWN)."""


@dataclass(frozen=True, slots=True)
class Filter:
    """`head`: the program up to the calls that only a process itself may be the object of; `own`: their numbers."""

    head: bytes
    own: tuple[int, ...]

    def program(self, pid: int) -> bytes:
        """Return the whole program for a process."""
        steps: list[_Step] = []
        for number in self.own:
            steps += _only(number, 0, pid)
        return self.head + _packed([*steps, _REFUSE])


def build(calls: Iterable[str] = RENDER, own: Iterable[str] = ABORT, machine: str = "") -> Filter | None:
    """Return the filter that allows these calls, PLAIN, and those of `own` on itself; None: the numbers of this machine aren't known."""
    numbers = _numbers(machine)
    if numbers is None:
        return None
    steps = _allowed(numbers, calls)
    for name in PLAIN:
        steps += _only(numbers[name], 3, 0)
    return Filter(_packed(steps), tuple(numbers[name] for name in own))


def build_program(*, starts: bool, libraries: bool = False, machine: str = "") -> Filter | None:
    """Return the filter of a program; None: the numbers of this machine aren't known.

    `starts`: whether it may start processes; `libraries`: whether it isn't static.
    """
    numbers = _numbers(machine)
    if numbers is None:
        return None
    thread: list[_Step] = [] if starts else [(_ANY_BIT, 0, 1, CLONE_THREAD)]
    clone: list[_Step] = [(_ANY_BIT, 1 + len(thread), 0, _CLONE_REFUSED), *thread, _ALLOW, _REFUSE]
    commands = [step for command in _FCNTL for step in ((_EQUAL, 0, 1, command), _ALLOW)]
    steps = [
        *_allowed(numbers, (*PROGRAM, *(START if starts else ()), *(LIBRARIES if libraries else ()))),
        *_about(numbers["clone"], 0, clone),
        *((_EQUAL, 0, 1, numbers["clone3"]), _UNKNOWN),  # its flags lie in memory, where a filter can't look
        *_about(numbers["fcntl"], 1, [*commands, _REFUSE]),
        *_about(numbers["openat"], 2, [(_ANY_BIT, 0, 1, _TMPFILE), _REFUSE, _ALLOW]),
        *_about(numbers["mmap"], 3, [(_ANY_BIT, 0, 1, _SHARED), _REFUSE, _ALLOW]),
        *_only(numbers["prlimit64"], 0, 0),
        *_about(numbers["tgkill"], 2, [(_EQUAL, 0, 1, _SIGURG), _ALLOW, (_LOAD, 0, 0, _NUMBER)]),
    ]
    return Filter(_packed(steps), tuple(numbers[name] for name in SIGNAL))


def build_starts(machine: str = "") -> bytes:
    """Return the filter that hands each start of a thread or process to who listens; what `build_program` refuses isn't handed over."""
    numbers = _numbers(machine) or {}
    return _packed([(_LOAD, 0, 0, _NUMBER), (_EQUAL, 0, 1, numbers["clone"]), _HAND_OVER, _ALLOW])


def _numbers(machine: str) -> Mapping[str, int] | None:
    """Return the numbers of a machine's calls, by default of this one's."""
    machine = machine or os.uname().machine
    if sys.maxsize < 1 << 32 or machine not in _MACHINES:
        return None
    column = _MACHINES.index(machine)
    return {"": _ARCHITECTURES[column], **{name: number for name, row in _NUMBERS.items() if (number := row[column]) is not None}}


def _allowed(numbers: Mapping[str, int], calls: Iterable[str]) -> list[_Step]:
    """Begin a program: kill what comes from another architecture, allow these calls."""
    steps: list[_Step] = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, numbers[""]), _KILL, (_LOAD, 0, 0, _NUMBER)]
    for name in calls:
        steps += [(_EQUAL, 0, 1, numbers[name]), _ALLOW] if name in numbers else []
    return steps


def _only(number: int, argument: int, value: int) -> list[_Step]:
    """Allow a call where one of its arguments has this value, and refuse it where it hasn't."""
    return _about(number, argument, [(_EQUAL, 0, 1, value), _ALLOW, _REFUSE])


def _about(number: int, argument: int, steps: list[_Step]) -> list[_Step]:
    """Take these steps for a call, with one of its arguments loaded."""
    return [(_EQUAL, 0, 1 + len(steps), number), (_LOAD, 0, 0, _ARGUMENTS[argument]), *steps]


def _packed(steps: Iterable[_Step]) -> bytes:
    return b"".join(struct.pack("HBBI", *step) for step in steps)
