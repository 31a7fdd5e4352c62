"""From decisions to jobs in the queue, for deliveries over HTTP and a cloud's own events alike."""

from __future__ import annotations

import time
from collections.abc import Sequence

from handler.model.errors import AnnealError
from handler.model.event import Decision, Delivery, Event, Job
from handler.queues import Queue


def put(queue: Queue, event: Event, decisions: Sequence[Decision], asked: float) -> dict[str, str]:
    """Put a job for each decision that matched into the queue; return the ids of their runs by target. `asked`: monotonic seconds.

    Raises SenderError: it takes none now.
    """
    matched = [decision for decision in decisions if decision.matched]
    runs = queue.put_all([_job(event, decision, asked) for decision in matched])
    return {decision.target: run for decision, run in zip(matched, runs, strict=True)}


def seen(refusal: AnnealError) -> str:
    """Return a refusal with the notes that its sender doesn't get."""
    return "; ".join([str(refusal), *getattr(refusal, "__notes__", ())])


def _job(event: Event, decision: Decision, asked: float) -> Job:
    received = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    change = decision.change
    delivery = Delivery(event.delivery, event.provider, change.ref, change.after, event.actor, received)
    return Job(decision.target, "push", hint=change.after, actor=event.actor, deliveries=(delivery,), asked=asked)
