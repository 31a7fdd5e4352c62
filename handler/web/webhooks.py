"""`POST /webhooks/<provider>`: from raw bytes to jobs in the queue, and an answer that explains each decision."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from flask import Response

from handler.config.secrets import Accepting
from handler.model.errors import AnnealError
from handler.model.run_event import Announce, DeliveryDecided
from handler.model.target_matching import TargetIndex
from handler.queues import Queue
from handler.triggers import Webhook
from handler.web import responses
from handler.web.delivery_decision import enqueue, judge, with_notes
from handler.web.recent_deliveries import RecentDeliveries, outcome_of


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """Receives deliveries for these targets. `deliveries`: remembers them; `announce`: takes their outcomes."""

    watched: TargetIndex
    secrets: Accepting
    queue: Queue
    deliveries: RecentDeliveries
    announce: Announce
    triggers: Mapping[str, Webhook]

    def receive(self, provider: str, headers: Mapping[str, str], read: Callable[[], bytes]) -> Response:
        """Handle one delivery. `read`: returns its body. Raises SenderError."""
        started = time.monotonic()
        with self._refusing(partial(DeliveryDecided, provider, "unread")):
            body = read()
        fields = {"bytes": len(body)}
        with self._refusing(partial(DeliveryDecided, provider, "refused", more=fields)):
            verdict = judge(self.triggers[provider], headers, body, self.secrets.webhook(provider), self.watched)
        event, decisions = verdict.event, verdict.decisions
        with self._refusing(partial(DeliveryDecided, provider, "untaken", event=event)):
            runs = enqueue(self.queue, event, decisions, started)
        self.deliveries.decided(event, decisions, runs)
        more = {**fields, "foreign": verdict.foreign, "seconds": time.monotonic() - started}
        self.announce(DeliveryDecided(provider, outcome_of(decisions), event=event, decisions=decisions, runs=runs, more=more))
        return responses.accepted(decisions, runs)

    @contextlib.contextmanager
    def _refusing(self, outcome: Callable[..., DeliveryDecided]) -> Iterator[None]:
        try:
            yield
        except AnnealError as refusal:
            made = outcome(code=refusal.code, seen=with_notes(refusal))
            self.deliveries.refused(made.provider, refusal)
            self.announce(made)
            raise
