"""Pushes from a cloud's event bus: decided and queued like HTTP deliveries, answered in the log.

Law: IAM alone admits the event, so it may concern every target; a queue that takes nothing is an error, and the bus sends it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from handler.app.run_events import SETTLE, RunEvents
from handler.functions.bootstrap import Added, bootstrap
from handler.model.errors import AnnealError, BadPayload
from handler.model.event import Event
from handler.model.run_event import DeliveryDecided
from handler.model.target_matching import TargetIndex, decide
from handler.queues import Queue
from handler.triggers import codecommit
from handler.web.delivery_decision import enqueue, watch, with_notes
from handler.web.recent_deliveries import outcome_of


@dataclass(frozen=True, slots=True)
class CodeCommitEvents:
    """Takes events of one provider. `read`: returns a function's input as an Event, raises BadPayload; `events`: takes its outcome."""

    provider: str
    read: Callable[[Any], Event]
    watched: TargetIndex
    queue: Queue
    events: RunEvents

    def __call__(self, event: Any, _context: Any) -> dict[str, Any]:
        """Return what was decided. Raises QueueUnavailable; what can't be read is refused, for it wouldn't be better a second time."""
        started = time.monotonic()
        try:
            pushed = self.read(event)
        except BadPayload as refusal:
            self._announce(DeliveryDecided(self.provider, "refused", refusal.code, str(refusal)))
            return {"matched": [], "ignored": [], "code": refusal.code, "error": str(refusal)}
        decisions = decide(pushed, self.watched)
        try:
            runs = enqueue(self.queue, pushed, decisions, started)
        except AnnealError as refusal:
            self._announce(DeliveryDecided(self.provider, "untaken", refusal.code, with_notes(refusal), pushed))
            raise
        more = {"seconds": time.monotonic() - started}
        self._announce(DeliveryDecided(self.provider, outcome_of(decisions), event=pushed, decisions=decisions, runs=runs, more=more))
        ignored = [{"target": decision.target or None, "reason": decision.reason} for decision in decisions if not decision.matched]
        return {"matched": [{"target": target, "run": run} for target, run in runs.items()], "ignored": ignored}

    def _announce(self, event: DeliveryDecided) -> None:
        """Announce an outcome, and wait for its feedback: a function is frozen once it has answered."""
        self.events.announce(event)
        self.events.drained(SETTLE)


def of_codecommit(environ: Mapping[str, str], added: Added = None) -> CodeCommitEvents:
    """Make the door of CodeCommit; it resolves no secret. Raises ConfigInvalid, QueueInvalid."""
    base = bootstrap(environ, (), added)
    events = RunEvents()
    for name in ("emf", "log"):
        events.add(name)
    return CodeCommitEvents("codecommit", codecommit.read, watch(base.settings.targets, follows_objects=False), base.queue, events)
