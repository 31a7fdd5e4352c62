"""What a process asks Linux about itself, by prctl(2). A refusal is an answer and never an error: AWS Lambda refuses every prctl."""

from __future__ import annotations

import ctypes
import struct
import sys

_PDEATHSIG, _DUMPABLE, _SECCOMP, _NO_NEW_PRIVS = 1, 4, 22, 38
_MODE_FILTER = 2


def keep_private() -> bool:
    """Let no other process of this user read this one's memory (nor gdb, but for root). A fork inherits it. Returns whether it is so."""
    return _prctl(_DUMPABLE, 0)


def die_with_parent(number: int) -> bool:
    """Ask for this signal when the parent ends. Returns whether it will come."""
    return _prctl(_PDEATHSIG, number)


def gain_no_privileges() -> bool:
    """Gain no right by exec any more. Returns whether it is so."""
    return _prctl(_NO_NEW_PRIVS, 1)


def filter_calls(program: bytes) -> bool:
    """Filter the process' system calls by a BPF program; needs no_new_privs. Returns whether the kernel does."""
    kept = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HP", len(program) // 8, ctypes.addressof(kept)))  # struct sock_fprog
    return _prctl(_SECCOMP, _MODE_FILTER, ctypes.addressof(header))


def _prctl(option: int, *arguments: int) -> bool:
    if sys.platform != "linux":
        return False
    call = ctypes.CDLL(None).prctl
    call.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
    return bool(call(option, *arguments, *[0] * (4 - len(arguments))) == 0)
