"""Which files a program may reach, where it may connect and whom it may signal: Landlock, by the kernel's own calls (landlock(7)).

Law: every right that the kernel knows is taken first, so that what isn't given is refused; a kernel without it is an answer, no error.
Landlock needs no right but `no_new_privs`. By hand: it is three system calls, and no kept library of it is on PyPI.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from handler.model.prctl import system_call

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # on every architecture
_ASK_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE, _READ, _LIST, _REMOVE, _TRUNCATE = 1, 1 << 1, 1 << 2, 1 << 3, 3 << 4, 1 << 14
_MAKE_CHAR, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM, _IOCTL = 1 << 6, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 15
_NEVER = _EXECUTE | _REMOVE | _MAKE_CHAR | _MAKE_SOCK | _MAKE_FIFO | _MAKE_BLOCK | _MAKE_SYM | _IOCTL
_FILES = {1: 13, 2: 14, 3: 15, 4: 15}
"""Version of the interface -> how many rights on files it has; later ones 16."""
_MOST_FILES = 16
_NETWORK, _SCOPES = 4, 6
"""The versions since which TCP can be refused, and abstract sockets and signals."""


def restrict(within: Iterable[int], execute: Iterable[int], use: Iterable[int], read: Iterable[int] = ()) -> bool:
    """Keep this process to some files for good; needs no_new_privs. Returns whether the kernel does.

    Each is an open descriptor. `within`: directories below which regular files and directories may be made, read and written;
    `execute`: files that it may become; `use`: files that it may read and write; `read`: files, and directories with all
    below them, that it may read.
    """
    version = system_call(_CREATE, 0, 0, _ASK_VERSION)
    if version < 1:
        return False
    rights = (1 << _FILES.get(version, _MOST_FILES)) - 1
    words = (rights, *((3,) if version >= _NETWORK else ()), *((3,) if version >= _SCOPES else ()))
    attributes = ctypes.create_string_buffer(struct.pack(f"={len(words)}Q", *words), len(words) * 8)  # struct landlock_ruleset_attr
    ruleset = system_call(_CREATE, ctypes.addressof(attributes), len(words) * 8, 0)
    if ruleset < 0:
        return False
    try:
        given = [(each, rights & ~_NEVER) for each in within]
        given += [(each, _EXECUTE | _READ) for each in execute]
        given += [(each, rights & (_READ | _WRITE | _TRUNCATE)) for each in use]
        given += [(each, _READ | (_LIST if stat.S_ISDIR(os.fstat(each).st_mode) else 0)) for each in read]
        rules = (ctypes.create_string_buffer(struct.pack("=Qi", allowed, each), 12) for each, allowed in given)
        added = [system_call(_ADD, ruleset, _PATH_BENEATH, ctypes.addressof(rule), 0) for rule in rules]
        return not any(added) and system_call(_RESTRICT, ruleset, 0) == 0
    finally:
        os.close(ruleset)
