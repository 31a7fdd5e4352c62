"""Runs a render function in a child that may crash, loop or eat memory without harm; its death is an answer like any other.

One fork server for a worker, best started with it; each render forks it in a few milliseconds. Several threads may render at once.
A server that died is started again unseen. Only sockets and pipes are used: cloud functions have no shared semaphores.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from handler.model import prctl
from handler.model.deadline import left
from handler.model.errors import RendererUnavailable, RenderFailed, Stopping
from handler.render.conversation import Conversation, RenderCall, ServerDied
from handler.render.programs.private_directories import PrivateDirectories
from handler.render.programs.program import Program

T = TypeVar("T")

_GONE = 10.0  # seconds in which the server ends once the worker's end is closed: at once, but where the machine is busy
_ISOLATED = ("-I", "-S", "-B", "-X", "utf8")
_decrypted: ContextVar[Callable[[], bool]] = ContextVar("decrypted", default=lambda: False)
_BOOT = "import sys, json; sys.path += json.loads(sys.argv[1]); from handler.render.child import main; main(int(sys.argv[2]), sys.argv[3])"


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Of one child. `memory`: bytes of address space; `cpu`, `seconds`: processor and wall time; `output`: bytes.

    `files`: descriptors beside those that are open at the start. A Go program would die of RLIMIT_AS.
    """

    memory: int = 1 << 30
    cpu: int = 60
    seconds: float = 60.0
    output: int = 256 << 20
    files: int = 0
    processes: int = 0


class Sandbox:
    """The fork server as its worker sees it. Used as a context, or closed by `close`. `lacks`: the walls that the last program lacked."""

    def __init__(
        self, functions: str = "handler.render.functions:FUNCTIONS", limits: SandboxLimits | None = None, *, weak: bool = False
    ) -> None:
        """`functions`: `module:NAME` of the table the server offers; `weak`: programs run also where their walls don't stand."""
        self.limits = limits or SandboxLimits()
        self.lacks: tuple[str, ...] = ()
        self.weak = weak
        self._places = PrivateDirectories()
        self._memory = PrivateDirectories(memory=True)
        self._functions = functions
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._beside: dict[str, Sandbox] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the fork server, so that the first render needn't wait for it."""
        with self._lock:
            self._started()

    def close(self) -> None:
        """End the fork server and every child of it, and those beside it."""
        with self._lock:
            self._stop()
            beside, self._beside = self._beside, {}
        self._places.close()
        self._memory.close()
        for each in beside.values():
            each.close()

    def beside(self, functions: str, limits: SandboxLimits) -> Sandbox:
        """Return the sandbox of another table of functions, with the limits named first; its server ends with this one's."""
        with self._lock:
            return self._beside.setdefault(functions, Sandbox(functions, limits, weak=self.weak))

    def run(
        self,
        function: str,
        options: Mapping[str, Any],
        parts: Sequence[bytes],
        decode: Callable[[bytes], T],
        subject: str = "render",
        program: Program | None = None,
        *,
        weak: bool = False,
    ) -> list[T]:
        """Call a function of the table in a child of its own and return what it yields.

        `options` go as JSON, `parts` as bytes; `decode` reads each piece of the result and raises ValueError if it can't. A `program` is
        run first, over files that are the parts: the function then gets what it wrote to standard output and the end of standard error, and
        in the options `exit_code` and `home`, its directory. `weak`: it is run also where its walls don't stand; `lacks` names these then.

        Raises RenderFailed: the child or its program crashed, ran out of memory or time, or said too much (`reason` says which);
        RendererUnavailable: no child can be started here, or a program's walls don't stand; Stopping: there was less time than a child may
        take.
        """
        seconds = left(self.limits.seconds + (program.limits.seconds if program else 0))
        call = RenderCall(b"", tuple(parts), seconds, self.limits.output, subject, program)
        head = {"function": function, "options": options, "limits": asdict(self.limits), "parts": [len(part) for part in parts]}
        try:
            return self._run(call, head, decode, self._memory if _decrypted.get()() else self._places, weak=weak or self.weak)
        except RenderFailed as error:
            if seconds < (program or self).limits.seconds and error.reason == "timeout":
                raise Stopping.of(subject, f"hasn't ended in the {seconds:.0f} s that were left; the next run goes on") from None
            raise

    def _run(
        self, call: RenderCall, head: dict[str, Any], decode: Callable[[bytes], T], places: PrivateDirectories, *, weak: bool
    ) -> list[T]:
        for _ in range(2):
            with contextlib.ExitStack() as place:
                try:
                    if call.program:
                        head["program"] = call.program.order(place.enter_context(places.one()), weak=weak)
                    server, conversation = self._ask(replace(call, head=json.dumps(head).encode()))
                except OSError as refused:
                    raise RendererUnavailable.of("render child", f"can't be started: {refused.strerror}") from None
                with conversation, contextlib.suppress(ServerDied):
                    found = conversation.run(decode)
                    self.lacks = tuple(conversation.lacks) if call.program else self.lacks
                    return found
            self._discard(server)
        raise RendererUnavailable.of("render child", "its fork server doesn't stay alive", fix="see what it wrote to standard error")

    def _ask(self, request: RenderCall) -> tuple[subprocess.Popen[bytes], Conversation]:
        """Hand the server both sockets of a new conversation."""
        with contextlib.ExitStack() as undone, self._lock:
            server, control = self._started()
            mine, childs = map(undone.enter_context, socket.socketpair())
            status, servers = map(undone.enter_context, socket.socketpair())
            with contextlib.suppress(OSError):  # the server died: the conversation will see that
                socket.send_fds(control, [b"r"], [childs.fileno(), servers.fileno()])
            childs.close()
            servers.close()
            undone.pop_all()
        return server, Conversation(request, mine, status)

    def _started(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        if self._server and self._control and self._server.poll() is None:
            return self._server, self._control
        self._stop()
        prctl.keep_private()  # without a uid of its own the child is of ours
        control, servers = socket.socketpair()
        with contextlib.ExitStack() as undone, servers:
            undone.enter_context(control)
            command = [sys.executable, *_ISOLATED, "-c", _BOOT, json.dumps(_path()), str(servers.fileno()), self._functions]
            server = subprocess.Popen(  # noqa: S603 - our own interpreter and code
                command,
                env=_environment(),
                pass_fds=[servers.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            undone.pop_all()
        self._server, self._control = server, control
        return server, control

    def _discard(self, server: subprocess.Popen[bytes]) -> None:
        """Forget a server that died, unless another thread has done so already."""
        with self._lock:
            if self._server is server:
                self._stop()

    def _stop(self) -> None:
        if self._control:
            self._control.close()
        if self._server:
            try:
                self._server.wait(_GONE)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
        self._server = self._control = None


@contextlib.contextmanager
def in_memory(needed: Callable[[], bool]) -> Iterator[None]:
    """Give programs that are run meanwhile, in this context, nothing on disk once that is `needed`."""
    before = _decrypted.set(needed)
    try:
        yield
    finally:
        _decrypted.reset(before)


def _path() -> list[str]:
    """Where the server finds this package and its vendors: absolute entries only, never the working directory."""
    here = str(Path(__file__).resolve().parents[2])
    return [here, *(entry for entry in sys.path if entry != here and Path(entry).is_absolute())]


def _environment() -> dict[str, str]:
    """What the interpreter itself may need to find its libraries; the server clears it."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "SYSTEMROOT") if name in os.environ}
