"""What a render child that was taken over might do: functions for a fork server of the tests."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


def echo(options: Mapping[str, Any], parts: list[bytes]) -> Iterable[bytes]:
    return [str(options["word"]).encode(), *parts]


def abort(_: Mapping[str, Any], __: list[bytes]) -> Iterable[bytes]:
    os.abort()


def segfault(_: Mapping[str, Any], __: list[bytes]) -> Iterable[bytes]:
    ctypes.string_at(0)
    return []


def leave(_: Mapping[str, Any], __: list[bytes]) -> Iterator[bytes]:
    yield b"half"
    raise SystemExit(0)


def say_and_die(_: Mapping[str, Any], __: list[bytes]) -> Iterator[bytes | None]:
    yield b"said"
    yield None
    yield b"kept back"
    os.abort()


def fail(_: Mapping[str, Any], parts: list[bytes]) -> Iterable[bytes]:
    raise LookupError(parts[0])


def eat(_: Mapping[str, Any], __: list[bytes]) -> Iterable[bytes]:
    return [bytes(64 << 20) for _ in range(1_000)]


def spin(_: Mapping[str, Any], __: list[bytes]) -> Iterable[bytes]:
    while True:
        pass


def sleep(_: Mapping[str, Any], __: list[bytes]) -> Iterable[bytes]:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(600)
    return []


def flood(_: Mapping[str, Any], __: list[bytes]) -> Iterator[bytes]:
    while True:
        yield b"x" * 10_000


def garble(_: Mapping[str, Any], __: list[bytes]) -> Iterable[bytes]:
    os.write(3, b"\0\0\0\x05?what")
    return []


def pid(_: Mapping[str, Any], __: list[bytes]) -> Iterator[bytes]:
    yield str(os.getpid()).encode()


def bomb(_: Mapping[str, Any], __: list[bytes]) -> Iterable[bytes]:
    try:
        os.fork()
    except OSError as refused:
        return [type(refused).__name__.encode()]
    os._exit(0)


def regain(_: Mapping[str, Any], __: list[bytes]) -> Iterator[bytes]:
    """Try to undo each limit."""
    for limit in (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_AS):
        yield _outcome(lambda limit=limit: resource.setrlimit(limit, (1 << 40, 1 << 40)))  # type: ignore[misc] # bound for this turn
    yield _outcome(lambda: os.setuid(0)) if os.getuid() else b"still root"


def touch(options: Mapping[str, Any], _: list[bytes]) -> Iterator[bytes]:
    """Try to write a file, read one, and open a connection."""
    yield _outcome(lambda: Path(options["path"]).write_text("x"))
    yield _outcome(lambda: Path("/etc/hostname").read_text())
    yield _outcome(socket.socket)


def look(_: Mapping[str, Any], __: list[bytes]) -> Iterator[bytes]:
    """What can be seen: variables, descriptors, groups, uid."""
    open_ones = [number for number in range(256) if _outcome(lambda number=number: os.fstat(number)) == b"done"]  # type: ignore[misc] # as above
    yield repr((dict(os.environ), open_ones, os.getgroups(), os.getsid(0) == os.getpid())).encode()
    yield str(os.getuid()).encode()


def _outcome(attempt: Callable[[], object]) -> bytes:
    try:
        attempt()
    except (OSError, ValueError) as refused:
        return type(refused).__name__.encode()
    return b"done"


FUNCTIONS = {
    function.__name__: function
    for function in (echo, abort, segfault, leave, say_and_die, fail, eat, spin, sleep, flood, garble, pid, bomb, regain, touch, look)
}
