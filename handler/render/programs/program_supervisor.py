"""Runs one program for a render child, and watches it: its files are written, its walls put up, its output read, its limits kept.

    take over     the run's directory, with a uid of its own where the child is root's
    write         the files of the order, regular ones only, into directories that are all made before the first
    start         a process that puts on its walls and becomes the program       program_walls, landlock, seccomp
    watch         memory, processors, processes, space, time, output

A program that waits for an expression on standard input is started, and watched, once its directories are made: loading nix takes longer
than writing its files. It gets the expression when all of them lie there; what fails before ends it. Another's standard input is empty.

Law: what breaks a limit ends the whole process group, the child in it, from which a program can't escape: no fork is missed. The child
says why before. A program that ended leaves no process.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import selectors
import signal
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handler.model import prctl
from handler.render.programs.process_tree import Usage, space, usage
from handler.render.programs.program import is_plain_path
from handler.render.programs.program_walls import THREADS, Standing, become
from handler.render.seccomp import CLONE_THREAD

TIMEOUT, MEMORY, CPU, OUTPUT, PROCESSES, SPACE, LEFT, CRASHED, KILLED, WALLS, UNSTARTED, UNPLACED = range(80, 92)
"""What a child says of a program that broke a limit, left a process behind, died of a signal, or wasn't started."""
ERRORS = 64 << 10
"""Bytes of standard error that are kept: the last ones."""

_TICK, _FIRST_LOOK, _REST = 0.01, 0.05, 20  # seconds; the directory is looked through again after so many times as long as that took
_CHUNK = 1 << 18
_FILES_AT_ONCE = 16  # a program that runs already waits no longer for leave to start a thread
_RECEIVE, _SEND, _NOTICE, _FIRST_ARGUMENT, _GO_ON = 0xC050_2100, 0xC018_2101, 80, 32, 1
"""Of seccomp_unotify(2): its two ioctls, the size of struct seccomp_notif and where the call's flags are, the flag that lets it go on."""


class ProgramEnded(Exception):
    """The program did what ends the child, or didn't start. `code`: one of the above; `note`: what explains it."""

    def __init__(self, code: int, note: str = "") -> None:
        """Keep both."""
        super().__init__(code)
        self.code = code
        self.note = note


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program said, and the walls that it lacked."""

    output: bytes
    errors: bytes
    exit_code: int
    home: str
    lacks: tuple[str, ...]


def run(
    order: Mapping[str, Any], parts: Iterator[bytes], take_over: Callable[[str], bool], instead: Callable[[Sequence[str]], None]
) -> Finished:
    """Run the program of an order to its end.

    `parts`: the call's, in order; `take_over`: gives up root and makes a directory that of the new user, and returns whether no other
    process has that user; `instead`: what is run where the order names no executable. Raises ProgramEnded.
    """
    place = order["place"]
    executables = [_opened(path) for path in (order["path"], *order["beside"], order["loader"]) if path]
    readable = [_opened(path) for path in order["readable"]]
    if not all(map(is_plain_path, order["files"])):
        raise ProgramEnded(UNPLACED, "a path leads elsewhere")
    prctl.adopt_orphans()
    private = take_over(place)
    _reachable(order["beside"], os.X_OK, "run")
    _reachable(order["readable"], os.R_OK, "read")
    home, own = f"{place}/files", f"{place}/own"
    os.umask(0o077)
    try:
        os.mkdir(home, 0o700)  # noqa: PTH102 - thousands of files: strings are faster
        os.mkdir(own, 0o700)  # noqa: PTH102 - the same
        for folder in {order["directory"], *(path.rpartition("/")[0] for path in order["files"])}:
            os.makedirs(f"{home}/{folder}", 0o700, exist_ok=True)  # noqa: PTH103 - the same
    except OSError as refused:
        raise ProgramEnded(UNPLACED, str(refused.strerror)) from None
    writing = _write(home, order["files"], parts)
    if not order["expression"]:
        deque(writing, maxlen=0)
    watch = _Watch(order["limits"], alone=not order["beside"], place=place)
    lacks = watch.start(Standing(order, home, own, executables, readable, private, os.getpid()), instead)
    code = watch.run(writing, order["expression"])
    os.closerange(min((*executables, *readable), default=4), os.sysconf("SC_OPEN_MAX"))
    return Finished(bytes(watch.said[0]), bytes(watch.said[1][-ERRORS:]), code, home, lacks)


def _opened(path: str) -> int:
    """Open what is run or read, as root where the child still is: its directory may be closed to the user that runs it."""
    try:
        return os.open(path, getattr(os, "O_PATH", os.O_RDONLY))
    except OSError as refused:
        raise ProgramEnded(UNSTARTED, str(refused.strerror)) from None


def _reachable(paths: Sequence[str], way: int, what: str) -> None:
    for path in paths:
        if not os.access(path, way):
            raise ProgramEnded(UNSTARTED, f"user {os.geteuid()} may not {what} {path}")


def _write(home: str, files: Mapping[str, int], parts: Iterator[bytes]) -> Iterator[None]:
    """Write each part where it belongs, one after the other, so that all of them are never held at once; yield after every few."""
    places: dict[int, list[str]] = {}
    for path, part in files.items():
        places.setdefault(part, []).append(path)
    for number, data in enumerate(parts):
        for path in places.get(number, ()):
            try:
                _write_file(f"{home}/{path}", data)
            except OSError as refused:
                raise ProgramEnded(UNPLACED, str(refused.strerror)) from None
        if number % _FILES_AT_ONCE == 0:
            yield


def _write_file(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    left = memoryview(data)
    while left:  # where there is no room for all of it, the rest is refused aloud
        left = left[os.write(descriptor, left) :]
    os.close(descriptor)


@dataclass(slots=True)
class _Watch:
    """Owns the running program. `said`: its two streams so far, of which are `open`; `alone`: it may start no process.

    `input`: the end of its standard input; `begun`, `next_check`, `next_look`: when it was started, and its limits are compared next.
    """

    limits: Mapping[str, Any]
    alone: bool
    place: str
    said: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))
    heard: int = 0
    pid: int = 0
    open: int = 2
    input: int = -1
    begun: float = 0.0
    next_check: float = 0.0
    next_look: float = 0.0
    sources: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def start(self, standing: Standing, instead: Callable[[Sequence[str]], None]) -> tuple[str, ...]:
        """Start the program; return the walls it lacks. Raises ProgramEnded."""
        given, self.input = os.pipe()
        ends = [os.pipe() for _ in range(2)]
        report, reporter = socket.socketpair()
        try:
            self.pid = os.fork()
        except OSError as refused:
            raise ProgramEnded(UNSTARTED, str(refused.strerror)) from None
        if self.pid == 0:
            become(standing, (given, ends[0][1], ends[1][1]), reporter, instead)
        self.begun = self.next_check = time.monotonic()
        self.next_look = self.begun + _FIRST_LOOK
        os.close(given)
        reporter.close()
        for (read, write), said in zip(ends, self.said, strict=True):
            os.close(write)
            os.set_blocking(read, False)
            self.sources.register(read, selectors.EVENT_READ, said)
        reported = self._heard(report)
        lacks = tuple(reported[0]["lacks"]) if reported else ()
        if lacks and not standing.order["weak"]:
            raise ProgramEnded(WALLS, " and ".join(lacks))
        if not reported or reported[-1]["failed"]:
            raise ProgramEnded(UNSTARTED, reported[-1]["failed"] if reported else "it died before")
        self.alone = self.alone and not lacks
        return lacks

    def _heard(self, report: socket.socket) -> list[dict[str, Any]]:
        """Hear what the process says before it becomes the program, and take the descriptor that asks for each start."""
        heard = b""
        with report:
            while True:
                data, descriptors, _, _ = socket.recv_fds(report, _CHUNK, 1)
                for each in descriptors:
                    os.set_inheritable(each, False)
                    self.sources.register(each, selectors.EVENT_READ)
                if not data:
                    return [json.loads(line) for line in heard.split(b"\n") if line]
                heard += data

    def run(self, writing: Iterator[None], expression: str) -> int:
        """Let the rest be written, hand over the expression, watch until the end; return the exit code. Raises ProgramEnded."""
        for _ in writing:
            self._read(0)
            self._keep_limits()
        with contextlib.suppress(BrokenPipeError):  # it has ended, and its exit code says why
            os.write(self.input, expression.encode())
        os.close(self.input)
        while True:
            self._read(_TICK if self.open else _TICK / 10)
            ended, status, used = os.wait4(self.pid, os.WNOHANG)
            if ended:
                return self._end(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime)
            self._keep_limits()

    def _keep_limits(self) -> None:
        """Compare with the limits what it is time to look at."""
        now = time.monotonic()
        if now - self.begun > self.limits["seconds"]:
            raise ProgramEnded(TIMEOUT)
        if now >= self.next_check:
            self._check(self._usage())
            self.next_check = now + _TICK
        if now >= self.next_look:
            self._look()
            looked = time.monotonic()
            self.next_look = looked + max(_FIRST_LOOK, (looked - now) * _REST)

    def _read(self, wait: float) -> None:
        """Take what the program says; wait so long where it says nothing."""
        for key, _ in self.sources.select(wait):
            if key.data is None:
                self._judge_start(key.fd)
                continue
            with contextlib.suppress(BlockingIOError):
                data = os.read(key.fd, _CHUNK)
                if not data:
                    self.sources.unregister(key.fd)
                    os.close(key.fd)
                    self.open -= 1
                self._keep(key.data, data)

    def _judge_start(self, listener: int) -> None:
        """Let a thread or a process be started where there is room for one, or end the program: a fork bomb outruns every clock."""
        waiting = select.poll()
        waiting.register(listener, select.POLLIN)
        event = next((event for _, event in waiting.poll(0)), 0)
        if not event & select.POLLIN:  # a kernel before 6.6 would wait for ever to hear of another
            if event & select.POLLHUP:  # all have ended; else the one that asked has, and others may ask
                self.sources.unregister(listener)
                os.close(listener)
            return
        request = bytearray(_NOTICE)
        with contextlib.suppress(OSError):  # who asked is gone
            fcntl.ioctl(listener, _RECEIVE, request)
            flags = struct.unpack_from("=Q", request, _FIRST_ARGUMENT)[0]
            self._check(self._usage(), processes=not flags & CLONE_THREAD, threads=1)
            fcntl.ioctl(listener, _SEND, struct.pack("=QqiI", struct.unpack_from("=Q", request)[0], 0, 0, _GO_ON))

    def _keep(self, said: bytearray, data: bytes) -> None:
        self.heard += len(data)
        said += data
        if len(self.said[0]) > self.limits["output"] or self.heard > self.limits["output"] + ERRORS:
            raise ProgramEnded(OUTPUT)
        if said is self.said[1] and len(said) > 4 * ERRORS:
            del said[:-ERRORS]

    def _usage(self) -> Usage:
        return usage(os.getpid(), self.pid, alone=self.alone, most=self.limits["processes"])

    def _check(self, used: Usage, processes: int = 0, threads: int = 0) -> None:
        """Compare what is used, and so many more processes and threads, with the limits."""
        if used.memory > self.limits["memory"]:
            raise ProgramEnded(MEMORY)
        if used.seconds > self.limits["cpu"]:
            raise ProgramEnded(CPU)
        most = self.limits["processes"]
        if used.processes + processes > most or used.threads + threads > most * THREADS:
            raise ProgramEnded(PROCESSES)

    def _look(self) -> None:
        if space(self.place, self.limits["entries"], self.limits["space"]):
            raise ProgramEnded(SPACE)

    def _end(self, code: int, seconds: float) -> int:
        """Read the rest; see that nothing is left running."""
        while self.open and any(key.data is not None for key, _ in self.sources.select(0)):
            self._read(0)
        if self.open or _left_behind():
            raise ProgramEnded(LEFT)
        if -code == signal.SIGKILL:
            raise ProgramEnded(CPU if seconds >= self.limits["cpu"] else KILLED)
        if code < 0:
            raise ProgramEnded(CRASHED, signal.Signals(-code).name)
        return code


def _left_behind() -> bool:
    """Whether a process is left that the program started; those that have ended are forgotten."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False
