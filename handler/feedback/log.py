"""The log lines of events: a delivery, a run's end, another health between runs.

Law: a failure is logged once. A run's message only joins its problems, and an unexpected exception has been logged with its trace.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar

from handler.model.event import PULL_REQUEST, Event
from handler.model.health import HealthState
from handler.model.result import INTERNAL, Outcome
from handler.model.run_event import DeliveryDecided, HealthChanged, RunEnded

_DELIVERIES = logging.getLogger("anneal.delivery")
_RUNS = logging.getLogger("anneal.run")
_HEALTH = logging.getLogger("anneal.health")
LOGGED = 20  # refs of a push that its line names


class EventLog:
    """Writes events to the log of this process."""

    hears: ClassVar[tuple[type, ...]] = (DeliveryDecided, RunEnded, HealthChanged)

    def hear(self, event: DeliveryDecided | RunEnded | HealthChanged) -> None:
        """Write the line of an event, if it has one."""
        match event:
            case DeliveryDecided():
                _delivery(event)
            case RunEnded():
                _run(event)
            case HealthChanged(run=""):  # a run's verdict is in its record
                fields = {"target": event.target, "health": event.after, "was": event.before, "worst": list(event.worst)}
                _HEALTH.log(logging.INFO if event.after == HealthState.HEALTHY else logging.WARNING, "health", extra={"fields": fields})


def _delivery(event: DeliveryDecided) -> None:
    more, facts = {"provider": event.provider, **event.more}, _facts(event.event) if event.event else {}
    why = {"code": event.code, "seen": event.seen}
    match event.outcome:
        case "refused":
            _DELIVERIES.warning("delivery refused", extra={"fields": {**more, **why}})
        case "untaken":
            _DELIVERIES.warning("delivery not taken", extra={"fields": {**facts, **more, **why}})
        case "matched" | "ignored":
            ignored = {decision.target: decision.reason for decision in event.decisions if not decision.matched}
            _DELIVERIES.info("delivery", extra={"fields": {**more, **facts, "runs": event.runs, "ignored": ignored}})


def _facts(event: Event) -> Mapping[str, Any]:
    known = {"delivery": event.delivery, "kind": event.kind, "actor": event.actor}
    if event.kind == PULL_REQUEST:
        return known | {"pull_request": event.pull_request, "comment": event.comment}
    return known | {"pushed": {change.ref: change.after for change in event.changes[:LOGGED]}, "refs": len(event.changes)}


def _run(event: RunEnded) -> None:
    job, result = event.job, event.result
    fields: dict[str, Any] = {
        "target": result.target,
        "outcome": result.outcome,
        "trigger": job.cause,
        "commit": result.commit,
        "rounds": [f"{each.commit}: {each.code or each.outcome}" for each in result.ends],
        "run": job.run,
        "requests": job.joined,
        "actor": job.actor,
        "deliveries": [delivery.id for delivery in job.deliveries],
        "seconds": result.duration or event.seconds,
        "counts": result.counts,
        "note": "" if result.problems else result.message,
        "problems": [str(problem) for problem in result.problems] if result.code != INTERNAL else [],
        "who": result.who,
        "code": result.code,
        "next_try": result.next_try,
        "looks_for": result.again.hint if result.again else "",
    }
    level = logging.WARNING if result.outcome in (Outcome.FAILED, Outcome.ROLLED_BACK) else logging.INFO
    _RUNS.log(level, "run", extra={"fields": {key: value for key, value in fields.items() if value not in ("", (), [], {}, 0.0)}})
