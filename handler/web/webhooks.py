"""`POST /webhooks/<provider>`: from raw bytes to jobs in the queue, and an answer that explains each decision."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from flask import Response

from handler.config.secrets import Secrets
from handler.config.settings import Target
from handler.model.errors import AnnealError, BadSignature
from handler.model.event import Decision, Delivery, Event, Job
from handler.model.match import Watched, concerns, decide
from handler.queues import Queue
from handler.triggers import TRIGGERS
from handler.web import answers

_LOG = logging.getLogger("anneal.delivery")


class Webhooks:
    """Receives deliveries for these targets."""

    def __init__(self, targets: Sequence[Target], secrets: Secrets, queue: Queue) -> None:
        self._watched = tuple(
            Watched(target.name, (target.repository.url, *target.repository.aliases), target.revision.ref) for target in targets
        )
        self._secrets = secrets
        self._queue = queue

    def receive(self, provider: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Handle one delivery. Raises SenderError."""
        started = time.monotonic()
        fields: dict[str, Any] = {"provider": provider, "bytes": len(body)}
        try:
            event = TRIGGERS[provider].parse(headers, body, [accepted.secret for accepted in self._secrets.webhook(provider)])
            fields |= {"delivery": event.delivery, "kind": event.kind, "ref": event.ref, "hint": event.after, "actor": event.actor}
            decisions = self._decide(event, headers, body)
        except AnnealError as refusal:
            _LOG.warning("delivery refused", extra={"fields": {**fields, "code": refusal.code, "seen": str(refusal)}})
            raise
        runs = {decision.target: self._queue.put(_job(event, decision.target)) for decision in decisions if decision.matched}
        fields |= {"runs": runs, "ignored": {decision.target: decision.reason for decision in decisions if not decision.matched}}
        _LOG.info("delivery", extra={"fields": {**fields, "seconds": time.monotonic() - started}})
        return answers.accepted(decisions, runs)

    def _decide(self, event: Event, headers: Mapping[str, str], body: bytes) -> tuple[Decision, ...]:
        """Decide, but only for the targets whose repository the sender's secret may speak for.

        A secret that speaks for none of the targets it names is as good as none: otherwise whoever holds the secret of one
        repository could trigger, and learn of, those of another.
        """
        proves = TRIGGERS[event.provider].proves
        proven = [accepted.targets for accepted in self._secrets.webhook(event.provider) if proves(headers, body, accepted.secret)]
        allowed = frozenset[str]().union(*proven)
        foreign = {target.name for target in self._watched if concerns(event, target)} - allowed
        decisions = decide(event, self._watched)
        if foreign and all(decision.target in foreign for decision in decisions):
            raise BadSignature.of("webhook", "missing or wrong signature")
        return tuple(_not_allowed(decision) if decision.target in foreign else decision for decision in decisions)


def _not_allowed(decision: Decision) -> Decision:
    return Decision(decision.target, matched=False, reason="it is signed with a secret of another webhook")


def _job(event: Event, target: str) -> Job:
    received = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    delivery = Delivery(event.delivery, event.provider, event.ref, event.after, event.actor, received)
    return Job(target, "push", hint=event.after, actor=event.actor, deliveries=(delivery,))
