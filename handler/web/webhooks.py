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
from handler.model.event import Decision, Event
from handler.queues import Queue
from handler.triggers import TRIGGERS, Trigger
from handler.web import enqueue, responses
from handler.web.delivery_decision import judge, watch

_LOG = logging.getLogger("anneal.delivery")
Heard = Callable[[Event, Sequence[Decision], Mapping[str, str]], None]


class WebhookEndpoint:
    """Receives deliveries for these targets. `heard`: called with each verified one, its decisions and the run ids by target."""

    def __init__(
        self, targets: Sequence[Target], secrets: Accepting, queue: Queue, heard: Heard, triggers: Mapping[str, Trigger] = TRIGGERS
    ) -> None:
        self._heard = heard
        self._triggers = triggers
        self._watched = watch(targets)
        self._secrets = secrets
        self._queue = queue

    def receive(self, provider: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Handle one delivery. Raises SenderError."""
        started = time.monotonic()
        fields: dict[str, Any] = {"provider": provider, "bytes": len(body)}
        try:
            verdict = judge(self._triggers[provider], headers, body, self._secrets.webhook(provider), self._watched)
        except AnnealError as refusal:
            _LOG.warning("delivery refused", extra={"fields": {**fields, "code": refusal.code, "seen": enqueue.seen(refusal)}})
            raise
        event, decisions = verdict.event, verdict.decisions
        runs = enqueue.put(self._queue, event, decisions, started)
        self._heard(event, decisions, runs)
        enqueue.tell(event, decisions, runs, {**fields, "foreign": verdict.foreign, "seconds": time.monotonic() - started})
        return responses.accepted(decisions, runs)
