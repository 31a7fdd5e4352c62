"""One exchange with a render child: the request goes out while the answer comes in, under a deadline and a cap.

Law: neither side can block the other, and every way a child can end has a name. Closing the status socket orders the child's death.
"""

from __future__ import annotations

import contextlib
import itertools
import selectors
import signal
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn, Self, TypeVar

from handler.model.errors import Problem, ProgramAbsent, RendererUnavailable, RenderFailed
from handler.render.child import DATA, END, LACK, MEMORY, NO_FORK, NOTE, PROGRAM, UNLIMITED
from handler.render.programs import program_supervisor
from handler.render.programs.process_tree import DEEPEST
from handler.render.programs.program import Program
from handler.render.programs.program_walls import THREADS

T = TypeVar("T")

_CHUNK = 1 << 18
_AT_ONCE = 500  # parts in one system call, which takes 1,024 at most
PIECES = 200_000
"""Pieces of one answer: each is an object here, so that many small ones would take far more memory than they have bytes."""


_SERIOUS = (
    "run it on Linux 5.13 or newer on x86_64 or aarch64, with a seccomp profile that allows landlock_create_ruleset and seccomp"
    " (the runtime's default does), or set `sandbox: weak` on the target if all who can push to it may read what the handler's user may:"
    " see SECURITY.md"
)


class ServerDied(Exception):
    """The fork server ended, and its children with it. Never leaves the room."""


@dataclass(frozen=True, slots=True)
class RenderCall:
    """What is asked of a child. `head`: JSON; `seconds`, `output`: what it may take and say; `subject`: what an error is about."""

    head: bytes
    parts: tuple[bytes, ...]
    seconds: float
    output: int
    subject: str
    program: Program | None = None


class Conversation:
    """Owns both sockets of one render."""

    def __init__(self, request: RenderCall, pipe: socket.socket, status: socket.socket) -> None:
        self.request = request
        self.pipe = pipe
        self.status = status
        self.code: int | None = None
        self.heard = 0
        self.note = ""
        self.lacks: list[str] = []
        self.buffer = bytearray()
        whole = (struct.pack("!I", len(request.head)), request.head, *request.parts)
        self.outgoing = deque(memoryview(data) for data in whole if data)

    def __enter__(self) -> Self:
        self.pipe.setblocking(False)
        self.status.setblocking(False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.pipe, selectors.EVENT_READ | selectors.EVENT_WRITE)
        self.selector.register(self.status, selectors.EVENT_READ)
        return self

    def __exit__(self, *_: object) -> None:
        self.selector.close()
        self.pipe.close()
        self.status.close()

    def run(self, decode: Callable[[bytes], T]) -> list[T]:
        """Return the decoded pieces of a whole answer.

        Raises RenderFailed: the child died, was too slow or said too much or nonsense; ProgramAbsent: its program's walls don't stand;
        RendererUnavailable: it couldn't be started or limited; ServerDied: there is no server.
        """
        result: list[T] = []
        deadline = time.monotonic() + self.request.seconds
        while True:
            over = self._wait(deadline)
            for kind, piece in self._frames():
                if kind == END:
                    return result
                if kind == DATA:
                    if len(result) >= PIECES:
                        self._fail("output", f"made more than {PIECES:,} pieces of output")
                    result.append(self._decoded(decode, piece))
                elif kind in (NOTE, LACK, PROGRAM):
                    self._hear(kind, piece)
                else:
                    self._fail("crash", "said what is no frame")
            if over:
                self._judge()

    def _wait(self, deadline: float) -> bool:
        """Send and receive what is possible now; True: the child has ended and said all it had to say."""
        ready = {key.fileobj for key, _ in self.selector.select(max(deadline - time.monotonic(), 0))}
        if not ready:
            self._fail("timeout", f"took longer than {self.request.seconds:g} s")
        over = self.status in ready
        if over:
            with contextlib.suppress(ConnectionResetError):
                data = self.status.recv(4)
                self.code = struct.unpack("!i", data)[0] if len(data) == 4 else None
        if self.pipe in ready or over:
            self._send()
            self._receive(everything=over)
        return over

    def _send(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self.outgoing:
                try:
                    sent = self.pipe.sendmsg(itertools.islice(self.outgoing, _AT_ONCE))
                except (BrokenPipeError, ConnectionResetError):
                    self.outgoing.clear()
                    break
                while self.outgoing and sent >= len(self.outgoing[0]):
                    sent -= len(self.outgoing.popleft())
                if sent:
                    self.outgoing[0] = self.outgoing[0][sent:]
        if not self.outgoing and self.pipe.fileno() in self.selector.get_map():
            self.selector.modify(self.pipe, selectors.EVENT_READ)

    def _receive(self, *, everything: bool) -> None:
        """Take what has come; after the child's end all of it is here already."""
        while True:
            try:
                data = self.pipe.recv(_CHUNK)
            except BlockingIOError:
                return
            except ConnectionResetError:
                data = b""
            if not data:
                with contextlib.suppress(KeyError):
                    self.selector.unregister(self.pipe)  # the status comes next
                return
            self.heard += len(data)
            if self.heard > self.request.output:
                self._fail("output", f"made more than {self.request.output:,} bytes of output")
            self.buffer += data
            if not everything:
                return

    def _frames(self) -> Iterator[tuple[bytes, bytes]]:
        at = 0
        while len(self.buffer) - at >= 4:
            size = struct.unpack_from("!I", self.buffer, at)[0]
            if len(self.buffer) - at - 4 < size:
                break
            frame = bytes(self.buffer[at + 4 : at + 4 + size])
            at += 4 + size
            yield frame[:1], frame[1:]
        del self.buffer[:at]

    def _hear(self, kind: bytes, piece: bytes) -> None:
        said = piece[:200].decode("ascii", "replace")
        if kind == LACK:
            self.lacks.append(said)
        elif kind == NOTE:
            self.note = said
        elif self.request.program and piece:
            self.note = said[1:]
            self._judge_program(self.request.program, piece[0])

    def _decoded(self, decode: Callable[[bytes], T], piece: bytes) -> T:
        try:
            return decode(piece)
        except (ValueError, RecursionError):
            self._fail("crash", "said what can't be read")

    def _judge(self) -> NoReturn:
        """Name the way a child ended that didn't say everything."""
        if self.code is None:
            raise ServerDied
        if self.code == UNLIMITED:
            fix = "run as another user than root, or with the right to change the uid (CAP_SETUID)"
            raise RendererUnavailable.of("render child", "its limits can't be set", fix=fix)
        if self.code == NO_FORK:
            raise RendererUnavailable.of("render child", "the system has no room for another process")
        if self.code == MEMORY or -self.code == signal.SIGKILL:
            self._fail("memory", "needed more memory than it may have")
        if -self.code == signal.SIGXCPU:
            self._fail("cpu", "needed more processor time than it may have")
        died = f"died of {signal.Signals(-self.code).name}" if self.code < 0 else f"failed ({self.note or f'exit code {self.code}'})"
        self._fail("crash", died)

    def _judge_program(self, program: Program, code: int) -> None:
        """Name what a program did, or why it wasn't started."""
        limits = program.limits
        ends = {
            program_supervisor.TIMEOUT: ("timeout", f"took longer than {limits.seconds:g} s"),
            program_supervisor.MEMORY: ("memory", f"needed more than {limits.memory >> 20:,} MiB of memory"),
            program_supervisor.CPU: ("cpu", f"needed more than {limits.cpu:,} s of processor time"),
            program_supervisor.OUTPUT: ("output", f"made more than {limits.output:,} bytes of output"),
            program_supervisor.SPACE: (
                "output",
                f"left more than {limits.entries:,} files, {limits.space >> 20:,} MiB or {DEEPEST} directories in each other",
            ),
            program_supervisor.PROCESSES: (
                "crash",
                f"started more processes or threads than it may have ({limits.processes:,} and {limits.processes * THREADS:,} at once)",
            ),
            program_supervisor.LEFT: ("crash", "ended and left a process running"),
            program_supervisor.KILLED: ("memory", "was killed by the system, as happens where memory runs out"),
            program_supervisor.CRASHED: ("crash", f"died of {self.note}"),
        }
        if code in ends:
            reason, message = ends[code]
            raise RenderFailed(Problem(self.request.subject, f"{program.name} {message}"), reason=reason)
        refused = {
            program_supervisor.WALLS: (f"isn't started: the walls {self.note} don't stand here", _SERIOUS),
            program_supervisor.UNSTARTED: (
                f"can't be started: {self.note}",
                "install it where every user may run it" + ("" if "/" in self.note else f"; it is looked for at {program.path}"),
            ),
            program_supervisor.UNPLACED: (
                f"gets no files: {self.note}",
                "set TMPDIR to a directory that every user may enter, with room for a tree",
            ),
        }
        if code in refused:
            message, fix = refused[code]
            kind = ProgramAbsent if code == program_supervisor.WALLS else RendererUnavailable
            raise kind.of("render child", f"{program.name} {message}", fix=fix)

    def _fail(self, reason: str, message: str) -> NoReturn:
        raise RenderFailed(Problem(self.request.subject, f"the render child {message}"), reason=reason)
