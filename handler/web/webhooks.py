"""`POST /webhooks/<provider>`: from raw bytes to jobs in the queue, and an answer that explains each decision."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from flask import Response

from handler.config.secrets import Accepting
from handler.config.settings import Target
from handler.model.errors import AnnealError
from handler.model.run_event import Announce, DeliveryDecided
from handler.queues import Queue
from handler.triggers import TRIGGERS, Trigger
from handler.web import enqueue, responses
from handler.web.delivery_decision import judge, watch
from handler.web.recent_deliveries import RecentDeliveries, outcome_of


class WebhookEndpoint:
    """Receives deliveries for these targets. `deliveries`: remembers them; `announce`: takes their outcomes."""

    def __init__(
        self,
        targets: Sequence[Target],
        secrets: Accepting,
        queue: Queue,
        deliveries: RecentDeliveries,
        announce: Announce,
        triggers: Mapping[str, Trigger] = TRIGGERS,
    ) -> None:
        self._deliveries = deliveries
        self._announce = announce
        self._triggers = triggers
        self._watched = watch(targets)
        self._secrets = secrets
        self._queue = queue

    def receive(self, provider: str, headers: Mapping[str, str], read: Callable[[], bytes]) -> Response:
        """Handle one delivery. `read`: returns its body. Raises SenderError."""
        started = time.monotonic()
        with self._refusing(partial(DeliveryDecided, provider, "unread")):
            body = read()
        fields = {"bytes": len(body)}
        with self._refusing(partial(DeliveryDecided, provider, "refused", more=fields)):
            verdict = judge(self._triggers[provider], headers, body, self._secrets.webhook(provider), self._watched)
        event, decisions = verdict.event, verdict.decisions
        with self._refusing(partial(DeliveryDecided, provider, "untaken", event=event)):
            runs = enqueue.put(self._queue, event, decisions, started)
        self._deliveries.decided(event, decisions, runs)
        more = {**fields, "foreign": verdict.foreign, "seconds": time.monotonic() - started}
        self._announce(DeliveryDecided(provider, outcome_of(decisions), event=event, decisions=decisions, runs=runs, more=more))
        return responses.accepted(decisions, runs)

    @contextlib.contextmanager
    def _refusing(self, outcome: Callable[..., DeliveryDecided]) -> Iterator[None]:
        """Announce and remember a refusal within this."""
        try:
            yield
        except AnnealError as refusal:
            made = outcome(code=refusal.code, seen=enqueue.seen(refusal))
            self._deliveries.refused(made.provider, refusal)
            self._announce(made)
            raise
