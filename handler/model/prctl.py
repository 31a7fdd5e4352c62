"""What a process asks Linux about itself, by prctl(2) and its kin. A refusal is an answer and no error: AWS Lambda refuses every prctl."""

from __future__ import annotations

import ctypes
import platform
import struct
import sys

_PDEATHSIG, _DUMPABLE, _SECCOMP, _SUBREAPER, _NO_NEW_PRIVS = 1, 4, 22, 36, 38
_MODE_FILTER = 2
_NEW_IPC, _NEW_NETWORK = 0x0800_0000, 0x4000_0000
_SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}
_SET_FILTER = 1


def keep_private() -> bool:
    """Let no other process of this user read this one's memory (nor gdb, but for root). A fork inherits it. Returns whether it is so."""
    return _prctl(_DUMPABLE, 0)


def die_with_parent(number: int) -> bool:
    """Ask for this signal when the parent ends. Returns whether it will come."""
    return _prctl(_PDEATHSIG, number)


def adopt_orphans() -> bool:
    """Become the parent of what processes below this one leave behind. Returns whether it is so."""
    return _prctl(_SUBREAPER, 1)


def own_network() -> bool:
    """Leave the network and System V's memory of all others for ones of its own; root may. Returns whether it is so."""
    return sys.platform == "linux" and bool(ctypes.CDLL(None).unshare(_NEW_NETWORK | _NEW_IPC) == 0)


def gain_no_privileges() -> bool:
    """Gain no right by exec any more. Returns whether it is so."""
    return _prctl(_NO_NEW_PRIVS, 1)


def filter_calls(program: bytes) -> bool:
    """Filter the process' system calls by a BPF program; needs no_new_privs. Returns whether the kernel does."""
    kept = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HP", len(program) // 8, ctypes.addressof(kept)))  # struct sock_fprog
    if _prctl(_SECCOMP, _MODE_FILTER, ctypes.addressof(header)):
        return True
    number = _SECCOMP_CALL.get(platform.machine()) if sys.platform == "linux" else None  # seccomp(2), where only prctl is refused
    return bool(number and ctypes.CDLL(None).syscall(*map(ctypes.c_long, (number, _SET_FILTER, 0, ctypes.addressof(header)))) == 0)


def _prctl(option: int, *arguments: int) -> bool:
    if sys.platform != "linux":
        return False
    call = ctypes.CDLL(None).prctl
    call.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
    return bool(call(option, *arguments, *[0] * (4 - len(arguments))) == 0)
