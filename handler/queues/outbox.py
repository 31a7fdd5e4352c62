"""The web process's end: jobs are taken at once, and handed to the worker process as soon as it is there.

While the worker restarts, they stay here, coalesced. A push is forgotten when the worker has acknowledged it, for the tick finds its
commit. What was asked by name is kept until its end: a second worker gets it only if the first is gone and the record shows no end.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from handler.model.backoff import Backoff
from handler.model.errors import TooManyRequests, WorkerUnavailable
from handler.model.event import Job
from handler.model.failure_trace import raised
from handler.queues import Queue, message, socket_frames
from handler.queues.pending import Pending, Work

_LOG = logging.getLogger("anneal.queue")
ANSWER_TIMEOUT = 5.0
"""Seconds the worker has to acknowledge; it only puts the job into a dictionary."""
READ_TIMEOUT = 8.0
"""Seconds the worker has to answer a question; for a run or a decision it asks a cluster for five at most."""
PATIENCE = {"gap": 40.0, "orphans": 40.0, "diff": 40.0, "tree": 20.0, "events": 20.0, "logs": 20.0}
"""Seconds for questions that a plan, a render or a look at a cluster answers."""
PAUSES = Backoff(0.05, 1.0)
"""Between two tries to hand a job over."""
LOOK_EVERY = 0.5
"""Seconds between looks at whether what is kept has ended."""
LATER = Backoff(LOOK_EVERY, 10.0)
"""Until a target whose record couldn't be read is asked about again."""
PAGE = 1000
"""Ids in one question: far less than a frame holds."""
MOST = 100
"""Requests of one target that one token may have open at once: a pipeline's leave room for an operator's."""
_UNKNOWN = "?"
"""The life of a worker that was sent a request and didn't acknowledge it."""


@dataclass(frozen=True, slots=True)
class UnfinishedRequest:
    """A request whose end isn't known. `boot`: the life of the worker that has it, empty while none has; `run`: the run it is in there."""

    work: Work
    run: str = ""
    boot: str = ""


class UnfinishedRequests:
    """What was asked by name (replay) and acknowledged to its sender, by its id, until its end is known. Thread-safe."""

    def __init__(self) -> None:
        self._open: dict[str, UnfinishedRequest] = {}
        self._changed = threading.Condition()
        self._closed = False

    def add(self, work: Work) -> None:
        """Keep a request. Raises TooManyRequests."""
        job = work.job
        with self._changed:
            open_jobs = (each.work.job for each in self._open.values())
            if sum((each.target, each.actor) == (job.target, job.actor) for each in open_jobs) >= MOST:
                raise TooManyRequests.of(f"target {job.target}", f"{MOST} requests of {job.actor} wait for their end already")
            self._open[work.run] = UnfinishedRequest(work)

    def taken(self, runs: Sequence[str], run: str, boot: str) -> frozenset[str]:
        """Note which life of the worker has these requests, and in which run; return those of them that are kept."""
        with self._changed:
            kept = self._open.keys() & set(runs)
            self._open |= {request: replace(self._open[request], run=run, boot=boot) for request in kept}
            self._changed.notify_all()
            return frozenset(kept)

    def doubted(self, runs: Sequence[str]) -> frozenset[str]:
        """Note that the worker may have these or not; return those that are kept, and so are asked about."""
        return self.taken(runs, "", _UNKNOWN)

    def ended(self, request: str) -> None:
        """Forget a request whose end is known."""
        with self._changed:
            self._open.pop(request, None)

    def handed(self) -> dict[str, UnfinishedRequest]:
        """Return the requests that a worker has, or may have."""
        with self._changed:
            return {request: each for request, each in self._open.items() if each.boot}

    def find(self, request: str) -> Work | None:
        """Return a request that is kept."""
        with self._changed:
            return self._open[request].work if request in self._open else None

    def wait(self) -> bool:
        """Wait until a worker has something that is kept; False once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or any(each.boot for each in self._open.values()))
            return not self._closed

    def close(self) -> tuple[Work, ...]:
        """End the waiting; return the requests that no worker has, as far as is known."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            return tuple(each.work for each in self._open.values() if each.boot in ("", _UNKNOWN))

    def __len__(self) -> int:
        with self._changed:
            return len(self._open)


class Outbox(Queue):
    """A `Queue` whose jobs run in another process. Made after the web process has forked: it owns two threads."""

    def __init__(self, path: Path) -> None:
        """`path`: the worker's socket, which may not exist yet."""
        self._path = path
        self._pending = Pending()
        self._kept = UnfinishedRequests()
        self._trouble: dict[str, tuple[int, float]] = {}  # by target: failures in a row, and until when it is left alone
        self._closing = threading.Event()
        for name, body in (("outbox", self._loop), ("kept", self._watch)):
            threading.Thread(target=body, name=name, daemon=True).start()

    def put(self, job: Job) -> str:
        """Take a job; return the id of its request. Raises TooManyRequests."""
        work = Work.of(job)
        if job.trigger == "replay":
            self._kept.add(work)
        self._pending.accept(work)
        return work.run

    @property
    def waiting(self) -> int:
        """How many targets have something that the worker hasn't acknowledged."""
        return self._pending.open

    @property
    def kept(self) -> int:
        """How many named requests have no known end."""
        return len(self._kept)

    def waits(self, request: str) -> Work | None:
        """Return a request that is still ours, with what it was merged with: not handed over, or kept until its end."""
        return self._pending.find(request) or self._kept.find(request)

    def ready(self) -> bool:
        """Ask the worker on a connection of its own whether it takes jobs."""
        try:
            with socket_frames.connect(self._path, 1.0) as connection:
                return socket_frames.ask(connection, {"ping": True}).get("taken") is True
        except (OSError, ValueError):
            return False

    def ask(self, question: str, **about: Any) -> dict[str, Any]:
        """Ask the worker on a connection of its own; the server bounds how many do at once.

        Raises WorkerUnavailable: it doesn't answer in time.
        """
        try:
            with socket_frames.connect(self._path, PATIENCE.get(question, READ_TIMEOUT)) as connection:
                return socket_frames.ask(connection, {"ask": question, **about})
        except (OSError, ValueError) as error:
            _LOG.warning("the worker doesn't answer", extra={"fields": {"question": question, "seen": str(error)}})
            raise WorkerUnavailable.of("worker", "doesn't answer", fix="ask again in a second") from None

    def close(self, timeout: float = 2.0) -> bool:
        """Hand over what waits, for at most `timeout` seconds; say whether everything was. What is lost with us is logged by name."""
        empty = self._pending.idle(timeout)
        self._closing.set()
        self._pending.close()
        for work in self._kept.close():
            _LOG.warning("a request ends with the web process: no worker has it", extra={"fields": work.log_fields()})
        return empty

    def _loop(self) -> None:
        connection: socket.socket | None = None
        while (work := self._pending.take()) is not None:
            try:
                connection = self._deliver(work, connection)
            except Exception as error:  # noqa: BLE001 - what can't be handed over may not hold up the others
                _close(connection)
                connection = None
                self._refused(work, raised(error))
            self._pending.done(work.job.target)
        _close(connection)

    def _refused(self, work: Work, seen: str) -> None:
        again = sorted(self._kept.doubted(work.runs))
        fields = {"target": work.job.target, "run": work.run, "trigger": work.job.trigger, "seen": seen, "asked again": again}
        _LOG.error("the worker refused a job", extra={"fields": fields})

    def _deliver(self, work: Work, connection: socket.socket | None) -> socket.socket | None:
        """Hand over until it is acknowledged or refused; what comes meanwhile waits, coalesced. Return the connection."""
        # A push that the worker may have taken unacknowledged is sent again; `_watch` finds out about requests by name.
        failures, left = 0, work
        while not self._closing.is_set():
            sent = False
            try:
                connection = connection or socket_frames.connect(self._path, ANSWER_TIMEOUT)
                socket_frames.send(connection, {"job": message.document(left)})
                sent = True  # whole: half a frame is none
                answer = socket_frames.answered(connection)
            except OSError as error:
                _close(connection)
                connection = None
                failures += 1
                pause = PAUSES.after(failures)
                _LOG.warning("the worker isn't there", extra={"fields": {"seen": str(error), "again in": pause}})
                remaining = left.without(self._kept.doubted(left.runs)) if sent else left
                if remaining is None:
                    return None
                left = remaining
                self._closing.wait(pause)
            else:
                if "refused" in answer:
                    self._refused(left, str(answer["refused"]))
                else:
                    self._kept.taken(left.runs, str(answer.get("run") or left.run), str(answer.get("boot")))
                return connection
        return connection

    def _watch(self) -> None:
        while self._kept.wait():
            try:
                with socket_frames.connect(self._path, READ_TIMEOUT) as connection:
                    self._look(connection)
            except (OSError, ValueError, TypeError, KeyError) as error:  # the last two: an answer of another form
                _LOG.debug("the worker isn't there", extra={"fields": {"seen": str(error)}})
            self._closing.wait(LOOK_EVERY)

    def _look(self, connection: socket.socket) -> None:
        """Ask for the end of all that is kept; what this life of the worker never took is handed over again."""
        handed = self._kept.handed()
        boot, known = _ends(connection, [each.run or request for request, each in handed.items()])
        for request, each in handed.items():
            asked = each.run or request
            run, ended = known.get(asked, (each.run, each.boot == boot))
            if ended:
                self._kept.ended(request)
            elif asked in known:
                self._kept.taken((request,), str(run), boot)
            elif time.monotonic() >= self._trouble.get(each.work.job.target, (0, 0.0))[1]:
                self._again(connection, request, each)

    def _again(self, connection: socket.socket, request: str, each: UnfinishedRequest) -> None:
        """Ask a new worker for what the last one had; a target whose record it couldn't read is left alone for a while."""
        target = each.work.job.target
        answer = socket_frames.ask(connection, {"ask": "again", "work": message.document(each.work), "was": each.run or request})
        if answer.get("ended") is True:
            self._kept.ended(request)
        elif answer.get("run"):
            _LOG.info("asked again of a new worker", extra={"fields": {"run": request, "target": target}})
            self._kept.taken((request,), str(answer["run"]), str(answer["boot"]))
        failures, _ = self._trouble.pop(target, (0, 0.0))
        if not (answer.get("ended") or answer.get("run")):  # each question may wait for its cluster, and the other targets' behind it
            self._trouble[target] = failures + 1, time.monotonic() + LATER.after(failures + 1)


def _ends(connection: socket.socket, requests: list[str]) -> tuple[str, dict[str, Any]]:
    boot, known = "", dict[str, Any]()
    for start in range(0, len(requests), PAGE):
        answer = socket_frames.ask(connection, {"ask": "ends", "requests": requests[start : start + PAGE]})
        boot = str(answer["boot"])
        known |= dict(answer["known"])
    return boot, known


def _close(connection: socket.socket | None) -> None:
    if connection is not None:
        connection.close()
