"""The worker process: takes jobs from the door and from the schedule, runs them, and announces the end of each.

It holds nothing that can't be lost: the start-up tick looks at every target again.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from handler.app.run_events import SETTLE, RunEvents
from handler.app.run_guard import Run, announced, guarded
from handler.app.target_status import Json, TargetStatusReader, ended
from handler.config.settings import Settings
from handler.engine.run.errors import DependencyNotReady
from handler.feedback.exposition import Exposition
from handler.feedback.prometheus import RunMetrics
from handler.model import malloc
from handler.model.event import Job
from handler.model.instance import template_of
from handler.model.pull_request import is_pull_request, lead_target
from handler.model.result import Outcome, Result
from handler.model.run_event import InstanceGone
from handler.queues.bulkheads import Bulkheads
from handler.queues.dead_letters import DeadLetterCount
from handler.queues.inbox import Closed, Inbox
from handler.queues.inline import Inline
from handler.queues.pending import Work
from handler.queues.sqs import SqsQueue
from handler.worker.health_watch.cluster_watch import HealthWatch
from handler.worker.health_watch.scopes import WatchConnections
from handler.worker.heartbeat_renewal import HeartbeatRenewal
from handler.worker.metric_labels import places
from handler.worker.sqs_consumer import SqsConsumer
from handler.worker.ticks import Look, Ticks
from handler.worker.trigger_thread import NamedTrigger, TriggerThread
from handler.worker.worker_api import WorkerApi

if TYPE_CHECKING:
    from handler.app.commit_statuses.subscriber import CommitStatuses
    from handler.app.instances.watch import InstanceWatch
    from handler.inspect.inspector import Inspector

_LOG = logging.getLogger("anneal.run")
GRACE = 17.0
"""Seconds that running runs have to finish or to release their Lease; the supervisor waits 20."""
CLOSING = 2.0
"""Seconds for the feedback of the last runs."""
LONGEST_WAIT = 1.0
"""Seconds until the loop looks at the schedule again, so that a retry armed meanwhile isn't late."""
TRIMMED = 60.0
"""Seconds between two times at which freed memory goes back to the system."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a worker is made of. `reader`: how targets stand; `requests`: sent to API servers so far.

    `look`: surveys the ticks of many targets; None: each has its run. `clock`: `tick`, or `drift` to compare live with git each time.
    `queue`: one that several workers share. `ways`: to the clusters, for heartbeats and health. `metrics`: the counting row of `FEEDBACK`.
    `inspector`: returns what answers that a record doesn't say. `live`: whether a page shows runs as they go on. `instances`: follows the
    objects of templates; None: there are none. `trigger`: asks for runs beside the clock. `statuses`: posts what records owe git hosts.
    """

    run: Run
    reader: TargetStatusReader
    requests: Callable[[], float] = lambda: 0.0
    look: Look | None = None
    queue: SqsQueue | None = None
    clock: str = "tick"
    ways: WatchConnections | None = None
    metrics: str = "prometheus"
    events: RunEvents = field(default_factory=RunEvents)
    inspector: Callable[[], Inspector] | None = None
    live: bool = False
    instances: InstanceWatch | None = None
    trigger: NamedTrigger | None = None
    statuses: CommitStatuses | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """What the worker process runs; the command line composes it.

    `prepare`: called before the process has any thread: the render fork server starts there. `build`: its `run` is called from several
    threads, never twice at once for one target; once its event is set, it finishes or releases its Lease soon.
    """

    prepare: Callable[[], None]
    build: Callable[[Settings], Parts]


class Worker:
    """Runs the jobs of these targets until `stop`."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self._names = frozenset(target.name for target in settings.targets)
        self._bulkheads = Bulkheads(settings)
        self._queue = Inline(self._work, self._bulkheads.threads, self._bulkheads, indexed=True)
        events = self._events = parts.events
        self._run = announced(guarded(parts.run), events.announce)
        self._metrics: RunMetrics = events.add(
            parts.metrics,
            lambda: self._queue.waiting,
            lambda: self._queue.running,
            parts.requests,
            lambda: len(self._queue.resting),
            places=places(settings),
            interval=settings.interval,
            settle=lambda: events.drained(SETTLE, parts.metrics),
        )
        events.add("log")
        live = events.add("live") if parts.live else None
        self.answers = WorkerApi(self._queue.runs, parts.reader, self._offered, self._metrics.text, parts.inspector, live)
        self._stop = threading.Event()
        self._trims = 0.0
        self._ticks = Ticks(settings, parts.look, self._due, self._quiet, self._bulkheads.mute)
        self._clock = parts.clock
        self._consumer = self._taking_from(parts.queue) if parts.queue else None
        self._letters = DeadLetterCount(parts.queue, self._metrics.dead_letters) if parts.queue else None
        self._instances = parts.instances
        if self._instances:
            known, self._instances.ask = self._instances.instances, self._due
            known.left += (self._ticks.forget, lambda name: events.announce(InstanceGone(name)))
            self._instances.status = events.add("resource", known.ways, known.known)
        self._statuses = parts.statuses
        self._trigger = TriggerThread(parts.trigger, tuple(sorted(self._names)), self._due) if parts.trigger else None
        self._heart: HeartbeatRenewal | None = None
        self._health: HealthWatch | None = None
        if parts.ways:
            self._heart = HeartbeatRenewal(settings, parts.ways.records, self._metrics.heartbeat)
            self._health = HealthWatch(settings, parts.ways, self._heart.watched, events.announce)
            if parts.instances:
                parts.instances.tell(self._health.add, self._health.remove)
            events.add("wakes", settings, parts.ways.records, self._wake)

    @property
    def _beside(self) -> Iterator[DeadLetterCount | HeartbeatRenewal | HealthWatch | InstanceWatch | TriggerThread]:
        return (each for each in (self._letters, self._heart, self._health, self._instances, self._trigger) if each)

    def _taking_from(self, queue: SqsQueue) -> SqsConsumer:
        return SqsConsumer(queue, self._names, self._bulkheads.threads, self._put, lambda: self._queue.busy, lambda: self._queue.resting)

    def stop(self) -> None:
        """Ask every run to come to its end, and `serve` to return. Safe in a signal handler."""
        self._stop.set()

    def serve(self, path: Path) -> None:
        """Take jobs at this socket and from the schedule until `stop`, then wait for the runs. Raises OSError if it can't listen."""
        inbox = Inbox(path, self._offered, self.answers.answer)
        self._queue.start()
        inbox.start()
        if self._consumer:
            self._consumer.start()
        for each in self._beside:
            each.start()
        _LOG.info("worker started", extra={"fields": {"targets": len(self._names)}})
        wait = 0.0
        while not self._stop.wait(wait):
            wait = self._look(time.monotonic())
        self._queue.close()
        for each in self._beside:
            each.stop()
        inbox.stop()
        if self._consumer:
            self._consumer.halt()
        left = self._queue.stop(GRACE)
        for work in self._queue.close():
            self._leave(work)
        if self._consumer:
            self._consumer.stop()
        if self._heart:
            self._heart.join()
        self._events.close(CLOSING)
        _LOG.info("worker stopped", extra={"fields": {"still running": left}})

    def _look(self, now: float) -> float:
        """Take what is due. Returns the seconds until the next look."""
        for job in self._ticks.due(now):
            self._due(replace(job, asked=now))
        self._queue.accept_due(now)
        if now >= self._trims:
            self._trims = now + TRIMMED
            malloc.trim()
        return min(max(min(self._ticks.next(), self._queue.next_due()) - now, 0.0), LONGEST_WAIT)

    def _offered(self, work: Work) -> Json:
        """Take a job from the web process. Raises Closed: this worker stops, the next one is asked."""
        if self._stop.is_set():
            raise Closed
        return self._accept(work)

    def _accept(self, work: Work) -> Json:
        """Put a job into the queue, once however often it is sent; return its run and the life of the worker."""
        if _owner(work.job.target) not in self._names:
            _LOG.warning("a job for an unknown target was dropped", extra={"fields": {"target": work.job.target}})
            return {"run": work.run, "boot": self._queue.runs.boot}
        return {"run": self._queue.accept_new(_taken(work)), "boot": self._queue.runs.boot}

    def _put(self, work: Work) -> None:
        self._queue.accept(_taken(work))

    def _due(self, job: Job) -> None:
        self._accept(Work.of(replace(job, trigger=self._clock) if job.trigger == "tick" else job))

    def _wake(self, jobs: Sequence[Job]) -> None:
        now = time.monotonic()
        for job in jobs:
            self._due(replace(job, asked=now))

    def _quiet(self, job: Job, result: Result) -> None:
        self._looked(job.target)
        if result.owes and self._statuses:
            self._statuses.look(job.target)
        self._metrics.quiet(job, result)  # no event: the ticks of all targets at once would push runs' ends out of a subscriber's queue

    def _looked(self, target: str) -> None:
        if self._heart:
            self._heart.looked(target)

    def _work(self, work: Work) -> None:
        if self._stop.is_set():  # handed out between the word to stop and the queue's end
            self._leave(work)
            return
        started = time.time()
        result = Result(work.job.target, Outcome.FAILED, run=work.run)  # should we fail before there is one
        try:
            self._queue.runs.running(work)
            result = self._run(work.begun(), self._stop, self._queue.place(work.job.target, patient=not self._holds(work)))
            self._follow(work, result, started)
        finally:  # whatever follows a run, its messages are held no longer
            if self._consumer and result.outcome is not Outcome.LAGGING:
                self._consumer.ended(work, result, cut=self._stop.is_set())

    def _holds(self, work: Work) -> bool:
        """Whether this work keeps messages: until its end no request for its target arrives, so it may not wait for long."""
        return self._consumer is not None and self._consumer.holds(work)

    def _follow(self, work: Work, result: Result, started: float) -> None:
        if result.outcome is Outcome.LAGGING:
            self._delay(work.again(), result.next_try)
        self._bulkheads.ended(work.job.target, result.code)
        if result.outcome is Outcome.LAGGING:
            return
        if work.named and result.outcome is Outcome.BUSY and self._stop.is_set():  # cut short: the next worker is asked for it
            self._queue.runs.back(work)
            self._leave(work)
        else:
            self._queue.runs.ended(work, ended(result, work.job, started))
        if result.again:
            self._again(Work.of(result.again), result.again_at)
        if is_pull_request(work.job.target):
            return
        waits_for_health = result.outcome is Outcome.WAITING and result.code != DependencyNotReady.code
        if waits_for_health and self._holds(work):  # goes on at once, without a message
            self._due(Job(work.job.target, "tick", asked=time.monotonic()))
        elif result.outcome is not Outcome.REFUSED:  # its target stands as before, and so does when it is looked at again
            self._ticks.ended(work.job.target, result.next_try)
        if result.outcome not in (Outcome.BUSY, Outcome.REFUSED):
            self._looked(work.job.target)

    def _leave(self, work: Work) -> None:
        """Give what this worker won't run back to a shared queue, or log its loss."""
        is_lost = work.named or work.job.is_plan  # a push is found by the next start's tick
        if not (self._consumer and self._consumer.left(work)) and is_lost:
            _LOG.warning("a request ends with the worker", extra={"fields": work.log_fields()})

    def _again(self, work: Work, at: float) -> None:
        """Let another try wait, a plan's in the shared queue if there is one. `at`: seconds since the epoch."""
        if not (self._consumer and work.job.is_plan and self._consumer.left(work)):
            self._delay(work, at)

    def _delay(self, work: Work, at: float) -> None:
        """Let a request wait, without a thread, until the git host may show its commit. `at`: seconds since the epoch."""
        self._queue.delay(work, time.monotonic() + max(at - time.time(), 0.0))


def _owner(target: str) -> str:
    """Return the configured target that a job is for: an instance's template, the first one of a pull request's repository."""
    return template_of(lead_target(target))


def _taken(work: Work) -> Work:
    """Note when a job was taken, if the door hasn't: what the git host is asked later shows what the job is about."""
    now = time.monotonic()
    return work if 0.0 < work.job.asked <= now else replace(work, job=replace(work.job, asked=now))


def work(settings: Settings, path: Path, engine: Engine, scraped: socket.socket | None = None) -> int:
    """Be the worker process: runs until SIGTERM or SIGINT; returns the exit status.

    `path`: where to listen, in a directory that only this user can enter; `scraped`: where metrics are asked for, if no web process is.
    """
    engine.prepare()
    worker = Worker(settings, engine.build(settings))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    if scraped:
        Exposition(scraped, worker.answers.exposed).start()
    worker.serve(path)
    return 0
