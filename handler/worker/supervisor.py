"""`anneal serve`: one supervisor, and under it the web process and the worker process.

The supervisor holds the listening socket, so that connections wait while the web process restarts; it restarts what dies, and passes on
SIGTERM. It has no threads; what only the worker needs is imported there.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from handler.app import log
from handler.app.external_services import fetcher
from handler.config.load import load
from handler.config.secrets import RUNS, resolve_all
from handler.config.settings import Settings
from handler.model import malloc, prctl
from handler.model.backoff import Backoff
from handler.model.errors import ConfigInvalid
from handler.queues.sqs import URL, queue_url
from handler.queues.sqs_client import QueueInvalid

if TYPE_CHECKING:
    from handler.worker.worker import Engine

_LOG = logging.getLogger("anneal.supervisor")
STOP_SECONDS = 20.0
PAUSES = Backoff(0.1, 10.0)
NICENESS = 5
"""Of the worker and its renders: on busy cores the door goes first, so that git hosts get their answer in time."""
STEADY = 30.0
"""Seconds after which a process that dies again starts without a longer pause."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)


class Child:
    """A process that is kept running. `body` runs in it after the fork and returns its exit status, or replaces it by exec."""

    def __init__(self, name: str, body: Callable[[], int]) -> None:
        self.name = name
        self.pid = 0
        self.due = 0.0
        self._body = body
        self._born = 0.0
        self._deaths = 1

    def start(self) -> None:
        """Fork it."""
        self._born = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            _be(self._body)

    def ended(self, status: int, *, expected: bool) -> None:
        """Note that it has ended and when it starts again: at once after a steady life, later and later otherwise."""
        now = time.monotonic()
        self._deaths = 1 if now - self._born > STEADY else self._deaths + 1
        pause = PAUSES.after(self._deaths)
        self.due = now + pause
        self.pid = 0
        fields = {"process": self.name, "status": status} | ({} if expected else {"again in": pause})
        _LOG.log(logging.INFO if expected else logging.WARNING, "a process ended", extra={"fields": fields})


class Supervisor:
    """Keeps its children running until SIGTERM or SIGINT."""

    def __init__(self, children: tuple[Child, ...]) -> None:
        self._children = children
        self._stopping = False
        self._read, self._write = os.pipe()

    def run(self) -> int:
        """Supervise; return 0 once all have ended after a signal."""
        prctl.keep_private()
        os.set_blocking(self._write, False)
        os.set_blocking(self._read, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, self._signalled)
        while not self._stopping:
            for child in self._children:
                if not child.pid and child.due <= time.monotonic():
                    child.start()
            self._wait(min((child.due for child in self._children if not child.pid), default=None))
        return self._stop()

    def _signalled(self, number: int, _frame: object) -> None:
        self._stopping = self._stopping or number != signal.SIGCHLD

    def _wait(self, until: float | None) -> None:
        """Sleep until a signal or that time, then reap what has ended."""
        select.select([self._read], [], [], None if until is None else max(until - time.monotonic(), 0.0))
        with contextlib.suppress(BlockingIOError):  # the time has come without a signal
            os.read(self._read, 4096)
        by_pid = {child.pid: child for child in self._children if child.pid}
        while (found := _reaped()) is not None:
            if found[0] in by_pid:
                by_pid[found[0]].ended(found[1], expected=self._stopping)

    def _stop(self) -> int:
        """Pass SIGTERM on; what hasn't ended after 20 seconds is killed."""
        deadline = time.monotonic() + STOP_SECONDS
        self._signal(signal.SIGTERM)
        while any(child.pid for child in self._children) and time.monotonic() < deadline:
            self._wait(deadline)
        self._signal(signal.SIGKILL)
        return 0

    def _signal(self, number: signal.Signals) -> None:
        for child in self._children:
            if child.pid:
                os.kill(child.pid, number)


Door = Callable[[Mapping[str, str]], int]
"""What the web process runs, given its environment."""


def serve(config: Path, bind: str, engine: Callable[[], Engine], door: Door, read: Callable[[Path], Settings] = load) -> int:
    """Serve the door of a configuration until SIGTERM or SIGINT; return the exit status. Raises ConfigInvalid, SecretUnavailable first.

    `bind`: `host:port`; `engine`: called in the worker process; `read`: how the configuration is read.
    """
    settings = read(config)
    log.configure()
    resolve_all(settings, os.environ, fetch=fetcher(os.environ))  # what is missing is found now
    queue_url(settings, os.environ)  # a mistake in it is found now, and not by every delivery
    with contextlib.ExitStack() as opened:
        listeners = {"ANNEAL_LISTEN": opened.enter_context(listen(bind, "--bind"))}
        host, port = listeners["ANNEAL_LISTEN"].getsockname()[:2]
        _LOG.info("listening", extra={"fields": {"host": host, "port": port, "targets": len(settings.targets)}})
        if settings.metrics.bind:
            listeners["ANNEAL_METRICS_LISTEN"] = opened.enter_context(_listen_for_metrics(settings, "metrics.bind"))
        return supervise(listeners, config, door, lambda path: _work(settings, path, engine))


def work_alone(config: Path, engine: Callable[[], Engine], read: Callable[[Path], Settings] = load) -> int:
    """Run a configuration's worker without a door, on its queue. Raises ConfigInvalid, SecretUnavailable, QueueInvalid first."""
    settings = read(config)
    log.configure()
    resolve_all(settings, os.environ, needs=RUNS, fetch=fetcher(os.environ))  # what is missing is found now
    if not queue_url(settings, os.environ):
        raise QueueInvalid.of("queue", "none is configured, and without one no work arrives", fix=f"set {URL} or `queue.sqs.url`")
    return run_alone(settings, engine)


def run_alone(settings: Settings, engine: Callable[[], Engine], listening: str = "metrics.bind") -> int:
    """Run a worker of these settings until SIGTERM or SIGINT; return the exit status. Raises ConfigInvalid first.

    `listening`: the flag or setting that says where metrics are asked for.
    """
    with contextlib.ExitStack() as opened:
        private = opened.enter_context(tempfile.TemporaryDirectory(prefix="anneal-"))  # made with mode 0700
        scraped = opened.enter_context(_listen_for_metrics(settings, listening)) if settings.metrics.bind else None
        child = Child("worker", lambda: _be_worker((), lambda path: _work(settings, path, engine, scraped), Path(private) / "worker.sock"))
        return Supervisor((child,)).run()


def supervise(listeners: Mapping[str, socket.socket], config: Path, door: Door, worker: Callable[[Path], int]) -> int:
    """Run web and worker until SIGTERM; return the exit status.

    `listeners`: bound, by the variable that names each to the web process; `worker`: the worker process, given its socket's path.
    """
    with tempfile.TemporaryDirectory(prefix="anneal-") as private:  # made with mode 0700
        path = Path(private) / "worker.sock"
        descriptors = {name: str(listener.fileno()) for name, listener in listeners.items()}
        environment = {
            **malloc.ENVIRONMENT,
            **os.environ,
            "ANNEAL_CONFIG": str(config.resolve()),
            "ANNEAL_SOCKET": str(path),
            **descriptors,
        }
        sockets = tuple(listeners.values())
        web = Child("web", lambda: _be_door(sockets, door, environment))
        return Supervisor((Child("worker", lambda: _be_worker(sockets, worker, path)), web)).run()


def listen(bind: str, asked_by: str) -> socket.socket:
    """Return a listening socket for `host:port` (`[::1]:8080` too). Raises ConfigInvalid, naming the flag or setting that asked for it."""
    host, _, port = bind.rpartition(":")
    try:
        address = host.strip("[]"), int(port)
        return socket.create_server(address, family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024)
    except (ValueError, OverflowError, OSError) as error:
        raise ConfigInvalid.of(f"{asked_by} {bind}", f"can't listen there: {error}", fix="use host:port, e.g. 127.0.0.1:8080") from error


def _listen_for_metrics(settings: Settings, asked_by: str) -> socket.socket:
    listener = listen(settings.metrics.bind, asked_by)
    host, port = listener.getsockname()[:2]
    _LOG.info("listening for metrics", extra={"fields": {"host": host, "port": port}})
    return listener


def _be_worker(listeners: Sequence[socket.socket], worker: Callable[[Path], int], path: Path) -> int:
    for listener in listeners:
        listener.close()  # it is the door's: a worker that outlives the supervisor may not hold the port
    os.nice(NICENESS)
    malloc.share_arenas()
    return worker(path)


def _work(settings: Settings, path: Path, engine: Callable[[], Engine], scraped: socket.socket | None = None) -> int:
    from handler.worker.worker import work  # loaded in the worker alone; after an upgrade of the package restart the whole

    return work(settings, path, engine(), scraped)


def _be_door(listeners: Sequence[socket.socket], door: Door, environment: Mapping[str, str]) -> int:
    for listener in listeners:
        listener.set_inheritable(True)  # a door may become another program
    return door(environment)


def _reaped() -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, os.waitstatus_to_exitcode(status)) if pid else None


def _be(body: Callable[[], int]) -> None:
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        prctl.die_with_parent(signal.SIGTERM)  # however the supervisor dies; where it can't be asked for, that leaves orphans
        status = body()
    except BaseException:  # noqa: BLE001 - a forked child may not return into its parent's code
        _LOG.critical("a process ended unexpectedly", exc_info=True)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
