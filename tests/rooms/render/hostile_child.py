"""What a render child that was taken over might do: functions for a fork server of the tests."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import resource
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)


def echo(options: Mapping[str, Any], parts: list[bytes]) -> Iterable[bytes]:
    return [str(options["word"]).encode(), *parts]


def said(options: Mapping[str, Any], parts: list[bytes]) -> Iterable[bytes]:
    """Hand on what a program did: its exit code and directory, then its two streams."""
    return [str(options["exit_code"]).encode(), str(options["home"]).encode(), *parts]


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
    """Wait for ever, deaf to signals: the worker says nothing more."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    os.read(3, 1)
    return []


def flood(_: Mapping[str, Any], __: list[bytes]) -> Iterator[bytes]:
    while True:
        yield b"x" * 10_000


def crumble(_: Mapping[str, Any], __: list[bytes]) -> Iterator[bytes]:
    while True:
        yield b""


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
    """What can be seen: variables, descriptors."""
    open_ones = [number for number in range(256) if _outcome(lambda number=number: os.read(number, 0)) == b"done"]  # type: ignore[misc] # as above
    yield repr((dict(os.environ), open_ones)).encode()


def escape(options: Mapping[str, Any], _: list[bytes]) -> Iterator[bytes]:
    """Close what is open, so that numbers are free again, then try everything that reaches out of a process. The pipe itself stays.

    `options["place"]`: a directory in which every user may write, with a file `there`; `options["worker"]`: the process to be harmed.
    """
    os.closerange(0, 3)
    for name, attempt in attempts(Path(options["place"]), int(options["worker"])).items():
        yield f"{name}: {_number(attempt)}".encode()


def attempts(place: Path, worker: int) -> Mapping[str, Callable[[], object]]:
    return {
        "open": lambda: os.open("/etc/hostname", os.O_RDONLY),
        "write": lambda: (place / "new").write_text("x"),
        "environ": lambda: Path(f"/proc/{worker}/environ").read_bytes(),
        "socket": socket.socket,
        "listener": lambda: socket.create_server(("127.0.0.1", 0)),
        "socketpair": socket.socketpair,
        "pipe": os.pipe,
        "memfd": lambda: os.memfd_create("x"),
        "dup": lambda: os.dup(3),
        "fork": _fork,
        "exec": lambda: os.execv("/nonexistent", ["x"]),
        "mkdir": (place / "directory").mkdir,
        "symlink": lambda: (place / "link").symlink_to("/etc"),
        "link": lambda: os.link(place / "there", place / "twice"),
        "rename": lambda: (place / "there").rename(place / "elsewhere"),
        "unlink": (place / "there").unlink,
        "truncate": lambda: os.truncate(place / "there", 0),
        "stat": Path("/etc/hostname").stat,
        "shm": lambda: _called("shmctl", _called("shmget", 0, 4096, 0o600), 0, None),
        "sem": lambda: _called("semctl", _called("semget", 0, 1, 0o600), 0, 0),
        "msg": lambda: _called("msgctl", _called("msgget", 0, 0o600), 0, None),
        "kill": lambda: os.kill(worker, 0),
        "seize": lambda: _called("ptrace", 0x4206, worker, 0, 0),
        "peek": lambda: _called("process_vm_readv", worker, (ctypes.c_size_t * 2)(0, 1), 1, (ctypes.c_size_t * 2)(0, 1), 1, 0),
        "urgent": lambda: _urgent(b"x"),
        "dumpable": lambda: _called("prctl", 4, 1, 0, 0, 0),
    }


def foreign(_: Mapping[str, Any], __: list[bytes]) -> Iterator[bytes]:
    """Ask for getpid as a program for i386 does, where the same number means another call."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20; int 0x80; ret
    yield str(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()).encode()


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _urgent(data: bytes) -> None:
    """Send out of band on the pipe, whatever becomes of it there."""
    pipe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, 3)
    try:
        pipe.send(data, socket.MSG_OOB)
    finally:
        pipe.detach()


def _called(name: str, *arguments: Any) -> int:
    answer: int = _LIBC[name](*arguments)
    if answer == -1:
        raise OSError(ctypes.get_errno(), name)
    return answer


def _number(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except OSError as refused:
        return errno.errorcode[refused.errno or 0]
    return "done"


def _outcome(attempt: Callable[[], object]) -> bytes:
    try:
        attempt()
    except (OSError, ValueError) as refused:
        return type(refused).__name__.encode()
    return b"done"


FUNCTIONS = {
    function.__name__: function
    for function in (
        *(echo, abort, segfault, leave, say_and_die, fail, eat, spin, sleep, flood, crumble, garble, pid, bomb, regain, touch, look),
        *(escape, foreign, said),
    )
}
