"""From decisions to jobs in the queue, and one line of the log: what comes over HTTP and what a cloud's own events ask go the same way."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from handler.model.errors import AnnealError
from handler.model.event import Decision, Delivery, Event, Job
from handler.queues import Queue

_LOG = logging.getLogger("anneal.delivery")
LOGGED = 20
"""Refs of a push that its log line names."""


def put(queue: Queue, event: Event, decisions: Sequence[Decision], asked: float) -> dict[str, str]:
    """Put a job for each decision that matched into the queue; return the ids of their runs by target. `asked`: monotonic seconds.

    Raises SenderError: it takes none now.
    """
    matched = [decision for decision in decisions if decision.matched]
    try:
        runs = queue.put_all([_job(event, decision, asked) for decision in matched])
    except AnnealError as refusal:
        fields = {**_facts(event), "provider": event.provider, "code": refusal.code, "seen": seen(refusal)}
        _LOG.warning("delivery not taken", extra={"fields": fields})
        raise
    return {decision.target: run for decision, run in zip(matched, runs, strict=True)}


def tell(event: Event, decisions: Sequence[Decision], runs: Mapping[str, str], more: Mapping[str, Any]) -> None:
    """Log a delivery and what was decided. `more`: what else its line says."""
    ignored = {decision.target: decision.reason for decision in decisions if not decision.matched}
    _LOG.info("delivery", extra={"fields": {**more, **_facts(event), "runs": runs, "ignored": ignored}})


def seen(refusal: AnnealError) -> str:
    """Return a refusal with the notes that its sender doesn't get."""
    return "; ".join([str(refusal), *getattr(refusal, "__notes__", ())])


def _facts(event: Event) -> dict[str, Any]:
    """Return what the log line says of an event."""
    pushed = {change.ref: change.after for change in event.changes[:LOGGED]}
    return {"delivery": event.delivery, "kind": event.kind, "actor": event.actor, "pushed": pushed, "refs": len(event.changes)}


def _job(event: Event, decision: Decision, asked: float) -> Job:
    received = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    change = decision.change
    delivery = Delivery(event.delivery, event.provider, change.ref, change.after, event.actor, received)
    return Job(decision.target, "push", hint=change.after, actor=event.actor, deliveries=(delivery,), asked=asked)
