"""The web process's end: jobs are taken at once, and handed to the worker process as soon as it is there.

While the worker restarts, they stay here, coalesced. A job is forgotten when the worker has acknowledged that it is in its queue.
"""

from __future__ import annotations

import logging
import socket
import threading
from pathlib import Path

from handler.model.event import Job
from handler.queues import wire
from handler.queues.pending import Pending, Work

_LOG = logging.getLogger("anneal.queue")
ANSWER_TIMEOUT = 5.0
"""Seconds the worker has to acknowledge; it only puts the job into a dictionary."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


class Outbox:
    """A `Queue` whose jobs run in another process. Made after the web process has forked: it owns a thread."""

    def __init__(self, path: Path) -> None:
        """`path`: the worker's socket, which may not exist yet."""
        self._path = path
        self._pending = Pending()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="outbox", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> str:
        """Take a job; return the id of its run."""
        work = Work.of(job)
        self._pending.put(work)
        return work.run

    def ready(self) -> bool:
        """Ask the worker on a connection of its own whether it takes jobs."""
        try:
            with _connect(self._path, 1.0) as connection:
                return _ask(connection, {"ping": True})
        except (OSError, ValueError):
            return False

    def close(self, timeout: float = 2.0) -> bool:
        """Hand over what waits, for at most `timeout` seconds; say whether everything was."""
        empty = self._pending.idle(timeout)
        self._closing.set()
        self._pending.close()
        return empty

    def _loop(self) -> None:
        connection: socket.socket | None = None
        pause = FIRST_PAUSE
        while (work := self._pending.take()) is not None:
            try:
                connection = connection or _connect(self._path, ANSWER_TIMEOUT)
                if not _ask(connection, wire.encode(work)):
                    raise ConnectionError("not acknowledged")
            except (OSError, ValueError) as error:
                _close(connection)
                connection = None
                self._pending.put_back(work)
                _LOG.warning("the worker isn't there", extra={"fields": {"seen": str(error), "again in": pause}})
                self._closing.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                pause = FIRST_PAUSE
                self._pending.done(work.job.target)
        _close(connection)


def _connect(path: Path, timeout: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def _ask(connection: socket.socket, message: dict[str, object]) -> bool:
    wire.send(connection, message)
    answer = wire.receive(connection)
    return answer is not None and answer.get("taken") is True


def _close(connection: socket.socket | None) -> None:
    if connection is not None:
        connection.close()
