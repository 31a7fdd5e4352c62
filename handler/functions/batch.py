"""Messages of the queue, as Lambda hands them over: each is run to its end; those that came to none are reported, and come again.

Law: messages of a FIFO queue are worked on in their order, plans of pull requests after all others; one that fails ends its group, which
is its target, and no other. What is reported comes back later and later, and after the queue's `maxReceiveCount` it is a dead letter.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from handler.app.run_events import POSTED, SETTLE, RunEvents
from handler.app.run_guard import announced, guarded
from handler.app.wakes import Wakes
from handler.config.secrets import RUNS
from handler.functions.bootstrap import Added, bootstrap, clusters
from handler.model import deadline as invocation
from handler.model.backoff import TRANSIENT
from handler.model.errors import AnnealError
from handler.model.run_event import RunEvent, unheard
from handler.queues import Queue, message
from handler.queues.message_outcome import MARGIN, Run, early, handle
from handler.queues.sqs import Received

if TYPE_CHECKING:
    from handler.app.build import Handler
    from handler.app.commit_statuses.subscriber import CommitStatuses

_LOG = logging.getLogger("anneal.queue")
SAFETY = 2.0  # seconds before the end of the function at which everything must have returned
RELEASE = 5.0  # seconds before that at which nothing is waited for any more: what is held is let go
AFTER = 30.0  # seconds after the end of the function at which a message comes again whose function died


class LambdaContext(Protocol):
    """The runtime's facts about an invocation."""

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until the function is ended by force."""


class BatchQueue(Queue, Protocol):
    """The part of the queue that a batch uses."""

    def postpone(self, messages: Sequence[Received], seconds: float) -> Any:
        """Let messages be handed out again after so many seconds. Raises QueueUnavailable."""


class Batch:
    """Works on the events of one event source mapping.

    `run`: runs a job; `events`: takes its end; `wake`: then wakes what waits for it; `settle`: waits for so many seconds until git hosts
    show what runs owe them.
    """

    def __init__(
        self,
        queue: BatchQueue,
        run: Run,
        events: RunEvents,
        wake: Callable[[RunEvent], None] = unheard,
        settle: Callable[[float], bool] = bool,
    ) -> None:
        self._settle = settle
        self._queue = queue
        self._run = announced(announced(guarded(run), events.announce), wake)  # before the message is acknowledged
        self._events = events

    def __call__(self, event: Any, context: LambdaContext) -> dict[str, Any]:
        """Return which messages of an event must come again."""
        left = context.get_remaining_time_in_millis() / 1000
        deadline = time.monotonic() + left - SAFETY
        received = sorted((Received.of(row) for row in event["Records"]), key=lambda each: each.group.startswith(message.PLANS))
        failed: set[str] = set()
        again: list[Received] = []
        unbegun: list[Received] = []
        for place, each in enumerate(received):
            late = place > 0 and time.monotonic() >= deadline - MARGIN
            if late or each.group in failed:
                unbegun.append(each)
            elif self._settled(each, deadline):
                continue
            failed.add(each.group)
            again.append(each)
        if unbegun:
            self._postpone(unbegun, 0)
        self._events.drained(SETTLE)
        self._settle(min(max(deadline - time.monotonic(), 0.0), POSTED))
        return {"batchItemFailures": [{"itemIdentifier": each.id} for each in again]}

    def _settled(self, received: Received, deadline: float) -> bool:
        """Work on a message; return whether it can be acknowledged. One that isn't comes again before the queue's own time is over."""
        fields = {"message": received.id, "target": received.group, "times": received.count}
        try:
            work = message.decode(received.body)
        except ValueError as error:
            _LOG.error("a message can't be read", extra={"fields": {**fields, "seen": str(error)}})
            self._postpone((received,), 0)
            return False
        if (seconds := early(work)) > 0:
            self._postpone((received,), seconds)
            return False
        self._postpone((received,), deadline - time.monotonic() + SAFETY + AFTER)
        try:
            with invocation.until(deadline - RELEASE):
                settled = handle(work, self._run, self._queue.put, deadline)
        except AnnealError as error:  # what is left to do can't be put into the queue: it is done again, whole
            _LOG.warning("a message isn't acknowledged", extra={"fields": {**fields, "run": work.run, "seen": str(error)}})
            settled = False
        if not settled:
            again = TRANSIENT.after(received.count)
            _LOG.warning("a message comes again", extra={"fields": {**fields, "run": work.run, "seconds": again}})
            self._postpone((received,), again)
        return settled

    def _postpone(self, received: Sequence[Received], seconds: float) -> None:
        """Say when messages come again that aren't acknowledged; where that can't be said, the queue's own visibility time-out counts."""
        try:
            self._queue.postpone(received, max(seconds, 0.0))
        except AnnealError as error:
            _LOG.warning("messages aren't postponed", extra={"fields": {"messages": [each.id for each in received], "seen": str(error)}})


def batch(environ: Mapping[str, str], added: Added = None) -> Batch:
    """Make the worker of functions; it knows what signs in to git hosts and Prometheus, no more.

    Raises ConfigInvalid, SecretUnavailable, QueueInvalid.
    """
    base = bootstrap(environ, RUNS, added)
    events = RunEvents()
    for name in ("emf", "log"):
        events.add(name)
    return working(clusters(base, environ, notes=True, announce=events.announce), base.queue, events)


def working(handler: Handler, queue: BatchQueue, events: RunEvents) -> Batch:
    """Return what runs a queue's messages by a handler; what waits for their targets is put into that queue."""
    settings, wakes = handler.settings, Wakes(handler.settings, handler.records, queue.put_all)
    statuses: CommitStatuses | None = None
    if settings.has_commit_statuses:
        statuses = events.add("statuses", settings, handler)
    return Batch(queue, handler.run, events, wakes.hear, statuses.settle if statuses else bool)
