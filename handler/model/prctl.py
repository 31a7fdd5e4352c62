"""What a process asks Linux about itself, by prctl(2) and its kin. A refusal is an answer and no error: AWS Lambda refuses every prctl."""

from __future__ import annotations

import ctypes
import platform
import struct
import sys

_PDEATHSIG, _DUMPABLE, _SECCOMP, _SUBREAPER, _NO_NEW_PRIVS = 1, 4, 22, 36, 38
_MODE_FILTER = 2
_SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}
_SET_FILTER, _NEW_LISTENER = 1, 8


def keep_private() -> bool:
    """Let no other process of this user read this one's memory (nor gdb, but for root). A fork inherits it. Returns whether it is so."""
    return _prctl(_DUMPABLE, 0)


def die_with_parent(number: int) -> bool:
    """Ask for this signal when the parent ends. Returns whether it will come."""
    return _prctl(_PDEATHSIG, number)


def adopt_orphans() -> bool:
    """Become the parent of what processes below this one leave behind. Returns whether it is so."""
    return _prctl(_SUBREAPER, 1)


def gain_no_privileges() -> bool:
    """Gain no right by exec any more. Returns whether it is so."""
    return _prctl(_NO_NEW_PRIVS, 1)


def filter_calls(program: bytes) -> bool:
    """Filter the process' system calls by a BPF program; needs no_new_privs. Returns whether the kernel does."""
    header = _Header(program)
    return _prctl(_SECCOMP, _MODE_FILTER, header.address) or _seccomp(0, header) == 0  # seccomp(2), where only prctl is refused


def report_calls(program: bytes) -> int:
    """The same for a program that hands calls to another process; return the descriptor where that hears of them, or -1: there is none."""
    return _seccomp(_NEW_LISTENER, _Header(program))


class _Header:
    """A struct sock_fprog, which lives as long as this."""

    def __init__(self, program: bytes) -> None:
        self._program = ctypes.create_string_buffer(program, len(program))
        self._header = ctypes.create_string_buffer(struct.pack("HP", len(program) // 8, ctypes.addressof(self._program)))
        self.address = ctypes.addressof(self._header)


def _seccomp(flags: int, header: _Header) -> int:
    number = _SECCOMP_CALL.get(platform.machine())
    return system_call(number, _SET_FILTER, flags, header.address) if number else -1


def system_call(number: int, *arguments: int) -> int:
    """Make a call that the C library has no name for; return its answer, or -1: it is refused, or this isn't Linux."""
    if sys.platform != "linux":
        return -1
    return int(ctypes.CDLL(None).syscall(*map(ctypes.c_long, (number, *arguments))))


def _prctl(option: int, *arguments: int) -> bool:
    if sys.platform != "linux":
        return False
    call = ctypes.CDLL(None).prctl
    call.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
    return bool(call(option, *arguments, *[0] * (4 - len(arguments))) == 0)
