"""Pushes from a cloud's event bus: decided and queued like HTTP deliveries, answered in the log.

Law: IAM alone admits the event, so it may concern every target; a queue that takes nothing is an error, and the bus sends it again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from handler.feedback.emf import EmfLines
from handler.functions.bootstrap import Added, ground
from handler.model.errors import BadPayload
from handler.model.event import Event
from handler.model.target_matching import TargetIndex, decide
from handler.queues import Queue
from handler.triggers import codecommit
from handler.web import enqueue
from handler.web.delivery_decision import watch

_LOG = logging.getLogger("anneal.delivery")


@dataclass(frozen=True, slots=True)
class CodeCommitEvents:
    """Takes events of one provider. `read`: returns a function's input as an Event, raises BadPayload; `lines`: called with each."""

    provider: str
    read: Callable[[Any], Event]
    watched: TargetIndex
    queue: Queue
    lines: EmfLines

    def __call__(self, event: Any, _context: Any) -> dict[str, Any]:
        """Return what was decided. Raises QueueUnavailable; what can't be read is refused, for it wouldn't be better a second time."""
        started = time.monotonic()
        try:
            pushed = self.read(event)
        except BadPayload as refusal:
            _LOG.warning("delivery refused", extra={"fields": {"provider": self.provider, "code": refusal.code, "seen": str(refusal)}})
            self.lines.delivery(self.provider, "refused", refusal.code)
            return {"matched": [], "ignored": [], "code": refusal.code, "error": str(refusal)}
        decisions = decide(pushed, self.watched)
        runs = enqueue.put(self.queue, pushed, decisions, started)
        self.lines.delivery(self.provider, "matched" if runs else "ignored")
        enqueue.tell(pushed, decisions, runs, {"provider": self.provider, "seconds": time.monotonic() - started})
        ignored = [{"target": decision.target or None, "reason": decision.reason} for decision in decisions if not decision.matched]
        return {"matched": [{"target": target, "run": run} for target, run in runs.items()], "ignored": ignored}


def of_codecommit(environ: Mapping[str, str], added: Added = None) -> CodeCommitEvents:
    """Make the door of CodeCommit; it resolves no secret. Raises ConfigInvalid, QueueInvalid."""
    base = ground(environ, (), added)
    return CodeCommitEvents("codecommit", codecommit.read, watch(base.settings.targets), base.queue, EmfLines())
