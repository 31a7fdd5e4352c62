"""The fork server and its children: where untrusted bytes are parsed.

Law: a child may crash, loop or eat memory without harm. It has no environment and one open pipe, gets no other descriptor, starts no
process and makes no system call but those of `seccomp` (where the kernel takes the filter); as root it becomes an uid of its own, for
RLIMIT_NPROC doesn't bind root. It dies with the server or the worker. The server is `python -I -S`: nothing of the worker is in it.
Where a call names a program, the child first runs that (`program_supervisor`), and only then gives up its last rights and reads what it
said.

For each render the server reads one byte with two sockets: the child's conversation, and one for its exit code; closing that kills it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import IOBase
from typing import Any, NoReturn

from handler.model import prctl
from handler.render import seccomp
from handler.render.programs import program_supervisor
from handler.render.walls import try_program_walls

MEMORY, FAILED, UNLIMITED, NO_FORK = 70, 71, 72, 73
"""Exit codes of a child: out of memory, an exception, its limits can't be set, it couldn't be started."""
DATA, END, NOTE, LACK, PROGRAM = b"D", b"E", b"X", b"L", b"P"
"""Kinds of a frame: one piece of the result, the end of it, the name of an exception, a wall that a program lacks, how it ended. Each
follows its length, four bytes."""

_PRIVATE_UID = 2_000_000_000
_OVERFLOW = 65_534
_CONVERSATION = 3
_BUFFER = 1 << 16
_HEARD = 1 << 18

Functions = Mapping[str, Callable[[Mapping[str, Any], list[bytes]], Iterable[bytes | None]]]
"""What a child may be asked for. None among the pieces of a result: what was said so far is sent now, for the child may not end well."""


def main(control: int, table: str) -> None:
    """Serve until the worker closes its end. `table`: `module:NAME` of the functions a child may be asked for."""
    os.environ.clear()
    prctl.keep_private()
    prctl.adopt_orphans()  # else they would be the container's first process' to bury
    module, _, name = table.partition(":")
    functions: Functions = getattr(importlib.import_module(module), name)
    server = _Server(socket.socket(fileno=control), functions, seccomp.build())
    gc.collect()
    gc.freeze()
    server.serve()


class _Server:
    """Forks a child for each request, reports its end, kills it when it is no longer wanted. One thread, no locks."""

    def __init__(self, control: socket.socket, functions: Functions, calls: seccomp.Filter | None) -> None:
        self.control = control
        self.functions = functions
        self.calls = calls
        self.children: dict[int, socket.socket | None] = {}
        self.selector = selectors.DefaultSelector()
        self.woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self.woken, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(control, selectors.EVENT_READ)
        self.selector.register(self.woken, selectors.EVENT_READ)

    def serve(self) -> None:
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.control:
                    if not self._accept():
                        for pid in list(self.children):
                            self._cancel(pid)
                        return
                elif key.data is None:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self.woken, _BUFFER)
                else:
                    self._cancel(key.data)
            self._reap()

    def _accept(self) -> bool:
        """Start a child; False: the worker is gone."""
        asked, descriptors, _, _ = socket.recv_fds(self.control, 1, 2)
        if not asked:
            return False
        conversation, status = (socket.socket(fileno=descriptor) for descriptor in descriptors)
        with conversation:
            server = os.getpid()
            try:
                pid = os.fork()
            except OSError:
                _send_code(status, NO_FORK)
                return True
            if pid == 0:
                _child(self.functions, conversation.detach(), server, self.calls)
        self.children[pid] = status
        self.selector.register(status, selectors.EVENT_READ, pid)
        return True

    def _reap(self) -> None:
        """Hear of children that ended, and bury what a program of theirs started."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid in self.children:
                    _kill(pid)  # whatever it has left in its process group
                    self._forget(pid, os.waitstatus_to_exitcode(status))
                    del self.children[pid]

    def _cancel(self, pid: int) -> None:
        self._forget(pid)
        _kill(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # it has no process group yet if it has only just begun

    def _forget(self, pid: int, code: int | None = None) -> None:
        status = self.children.get(pid)
        if status:
            self.children[pid] = None
            self.selector.unregister(status)
            _send_code(status, code)


def _send_code(status: socket.socket, code: int | None) -> None:
    """Write an exit code, if there is one, and hang up; the worker may have done so before."""
    with status, contextlib.suppress(OSError):
        if code is not None:
            status.sendall(struct.pack("!i", code))


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


# --- in the child
def _child(functions: Functions, conversation: int, server: int, calls: seccomp.Filter | None) -> NoReturn:
    """Do one render and end; nothing returns to the server's code."""
    code = FAILED
    try:
        code = _perform(functions, conversation, server, calls)
    except MemoryError:
        code = MEMORY
    finally:
        os._exit(code)


def _perform(functions: Functions, conversation: int, server: int, calls: seccomp.Filter | None) -> int:
    gc.disable()
    pipe = _alone(conversation)
    heard = pipe.makefile("rb", _HEARD)
    request = json.loads(_read(heard, struct.unpack("!I", _read(heard, 4))[0]))
    options = request["options"]
    parts: Iterator[bytes] = (_read(heard, size) for size in request["parts"])
    try:
        if request.get("program"):
            options, parts = _ran(request, parts, pipe, server)
        _limit(request["limits"], server, calls)
    except program_supervisor.ProgramEnded as ended:
        pipe.sendall(_frame(PROGRAM, bytes([ended.code]) + ended.note.encode()))
        os.killpg(0, signal.SIGKILL)
        return FAILED
    except (OSError, ValueError):
        return UNLIMITED
    try:
        _answer(pipe, functions[request["function"]](options, list(parts)))
    except MemoryError:
        return MEMORY
    except BaseException as failed:  # noqa: BLE001 - even an exit or an interrupt is a failed render
        pipe.sendall(_frame(NOTE, type(failed).__name__.encode()))
        return FAILED
    return 0


def _alone(conversation: int) -> socket.socket:
    """Leave the server's session, its signals and all its descriptors but the conversation."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDWR), 2)
    if conversation != _CONVERSATION:
        os.dup2(conversation, _CONVERSATION)
    os.set_inheritable(_CONVERSATION, False)
    os.closerange(_CONVERSATION + 1, os.sysconf("SC_OPEN_MAX"))
    return socket.socket(fileno=_CONVERSATION)


def _ran(request: Mapping[str, Any], parts: Iterator[bytes], pipe: socket.socket, server: int) -> tuple[dict[str, Any], Iterator[bytes]]:
    """Run the program of a request; return the options and the parts that its function gets. Raises ProgramEnded."""

    def take_over(place: str) -> bool:
        private = os.geteuid() == 0 and _drop_root(place)
        _die_with(server)
        return private

    finished = program_supervisor.run(request["program"], parts, take_over, try_program_walls)
    for wall in finished.lacks:
        pipe.sendall(_frame(LACK, wall.encode()))
    options = {**request["options"], "exit_code": finished.exit_code, "home": finished.home}
    return options, iter((finished.output, finished.errors))


def _die_with(server: int) -> None:
    prctl.die_with_parent(signal.SIGKILL)
    if os.getppid() != server:
        os._exit(FAILED)  # it died before the signal was set up


def _limit(limits: Mapping[str, int], server: int, calls: seccomp.Filter | None) -> None:
    """Give up every right a render doesn't need. `limits`: memory in bytes, cpu in seconds, open files, processes."""
    if os.geteuid() == 0:
        _drop_root()
    _set(resource.RLIMIT_NPROC, limits["processes"])
    _set(resource.RLIMIT_FSIZE, 0)
    _set(resource.RLIMIT_CORE, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (limits["cpu"], limits["cpu"] + 1))
    if sys.platform == "linux":  # elsewhere address space can't be limited, and a parent's death sends no signal
        _set(resource.RLIMIT_AS, limits["memory"])
    _die_with(server)
    _set(resource.RLIMIT_NOFILE, limits["files"])  # those that are open stay so; the number of one that is closed isn't given again
    prctl.gain_no_privileges()
    if calls:
        prctl.filter_calls(calls.program(os.getpid()))


def _set(limit: int, value: int) -> None:
    resource.setrlimit(limit, (value, value))


def _drop_root(place: str = "") -> bool:
    """Take an uid that no other process has, and a directory along; where a user namespace lacks it, uid 65534. Returns whether it has."""
    os.setgroups([])
    for uid in (_PRIVATE_UID + os.getpid(), _OVERFLOW):
        with contextlib.suppress(OSError):
            if place:
                os.chown(place, uid, uid, follow_symlinks=False)
            os.setgid(uid)
            os.setuid(uid)
            return uid != _OVERFLOW
    raise PermissionError("may not change its uid")


def _read(heard: IOBase, size: int) -> bytes:
    data: bytes = heard.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _answer(pipe: socket.socket, pieces: Iterable[bytes | None]) -> None:
    """Send the pieces of a result as they come, in large writes."""
    waiting = bytearray()
    for piece in pieces:
        waiting += _frame(DATA, piece) if piece is not None else b""
        if len(waiting) >= _BUFFER or piece is None:
            pipe.sendall(waiting)
            waiting.clear()
    pipe.sendall(waiting + _frame(END, b""))


def _frame(kind: bytes, piece: bytes) -> bytes:
    return struct.pack("!I", len(piece) + 1) + kind + piece
