"""`POST /webhooks/<provider>`: from raw bytes to jobs in the queue, and an answer that explains each decision."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flask import Response

from handler.config.secrets import Accepting
from handler.config.settings import Target
from handler.model.errors import AnnealError
from handler.model.event import Decision, Delivery, Event, Job
from handler.queues import Queue
from handler.web import answers
from handler.web.verdict import judge, watch

_LOG = logging.getLogger("anneal.delivery")
Heard = Callable[[Event, Sequence[Decision], Mapping[str, str]], None]
LOGGED = 20
"""Refs of a push that its log line names."""


class Webhooks:
    """Receives deliveries for these targets. `heard`: told of each verified one, its decisions and the run ids by target."""

    def __init__(self, targets: Sequence[Target], secrets: Accepting, queue: Queue, heard: Heard) -> None:
        self._heard = heard
        self._watched = watch(targets)
        self._secrets = secrets
        self._queue = queue

    def receive(self, provider: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Handle one delivery. Raises SenderError."""
        started = time.monotonic()
        fields: dict[str, Any] = {"provider": provider, "bytes": len(body)}
        try:
            verdict = judge(provider, headers, body, self._secrets.webhook(provider), self._watched)
        except AnnealError as refusal:
            _LOG.warning("delivery refused", extra={"fields": {**fields, "code": refusal.code, "seen": _seen(refusal)}})
            raise
        event, decisions = verdict.event, verdict.decisions
        runs = self._put(event, [decision for decision in decisions if decision.matched], started)
        self._heard(event, decisions, runs)
        fields |= _facts(event) | {"runs": runs, "foreign": verdict.foreign}
        fields |= {"ignored": {decision.target: decision.reason for decision in decisions if not decision.matched}}
        _LOG.info("delivery", extra={"fields": {**fields, "seconds": time.monotonic() - started}})
        return answers.accepted(decisions, runs)

    def _put(self, event: Event, matched: Sequence[Decision], started: float) -> dict[str, str]:
        """Put the jobs into the queue; return the ids of their runs by target. Raises SenderError: it takes none now."""
        try:
            runs = self._queue.put_all([_job(event, decision, started) for decision in matched])
        except AnnealError as refusal:
            fields = {**_facts(event), "provider": event.provider, "code": refusal.code, "seen": _seen(refusal)}
            _LOG.warning("delivery not taken", extra={"fields": fields})
            raise
        return {decision.target: run for decision, run in zip(matched, runs, strict=True)}


def _seen(refusal: AnnealError) -> str:
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
