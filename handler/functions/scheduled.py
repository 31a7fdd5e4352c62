"""The schedule of functions: an event each minute asks for the ticks and drift runs of that minute, and for what records say is due.

Law: nothing is remembered from one event to the next. A target's moments follow from its name and the clock, so that a thousand of them are
spread evenly; an event that comes twice, or late, asks for the same again, which the queue drops or a run finds done. Targets that the
configuration suspends are left out; one that a person has suspended is asked about at its own pace alone, for its pause may have ended.

What is due by records is read from one metadata LIST a cluster, all at once. A cluster that doesn't answer delays nobody longer than that,
and of its targets one a minute is asked about, in turn: a worker that runs into its silence is held up for half of that, and no second one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from handler.config.settings import Settings, Target
from handler.functions.ground import clusters, ground
from handler.functions.once import Once
from handler.model.errors import AnnealError, ClusterUnavailable
from handler.model.event import Job
from handler.queues import Queue
from handler.reading import Looks, Readable
from handler.state.configmap import INSTALLATION, SUMMARY, TARGET, read_summary
from handler.state.record import Summary
from handler.state.rules import seconds_of
from handler.triggers.phases import due_between

_LOG = logging.getLogger("anneal.schedule")
MINUTE = 60.0
AGAIN = 300.0
"""Seconds between two questions for what is due and stays so: a run that dies before it can say anything isn't asked for each minute."""
PATIENCE = 5.0
"""Seconds that clusters have to answer."""
Records = Callable[[Target], Readable]


def minute(event: Any, now: float) -> tuple[float, float]:
    """Return the whole minute before an event, as start and end in seconds since the epoch; `now` counts where the event names no time."""
    told = event.get("time") if isinstance(event, Mapping) else None
    try:
        at = datetime.fromisoformat(told).astimezone(UTC).timestamp() if isinstance(told, str) else now
    except (ValueError, OverflowError):
        at = now
    end = at // MINUTE * MINUTE
    return end - MINUTE, end


def by_clock(settings: Settings, start: float, end: float) -> tuple[Job, ...]:
    """Return the drift runs and ticks that fall between two times; a drift run does what a tick does, and takes its place."""
    followed = [target for target in settings.targets if not target.suspend]
    drifting = [target.name for target in followed if target.drift != "ignore"]
    drifts = due_between(drifting, settings.drift_interval, start, end)
    ticks = due_between((target.name for target in followed), settings.interval, start, end)
    return (*(Job(name, "drift") for name in drifts), *(Job(name, "tick") for name in ticks if name not in set(drifts)))


def by_record(name: str, summary: Summary, start: float, end: float) -> bool:
    """Whether a target's record says that a run is due between two times.

    A retry or a drift run is asked for once when its time comes; what is overdue, an attempt that is open (it may be under way), and what
    was asked for and nobody has begun, every few minutes.
    """
    if summary.suspended:
        return False
    times = [seconds_of(text) for text in (summary.next_try, summary.drift_due) if text]
    if any(start <= at < end for at in times):
        return True
    overdue = summary.attempt or summary.asked or any(at < start for at in times)
    return bool(overdue and due_between((name,), AGAIN, start, end))


@dataclass(frozen=True, slots=True)
class Minutes:
    """Enqueues what a minute asks for. `records`: the way to a target's cluster, raises AnnealError."""

    settings: Settings
    queue: Queue
    records: Records
    looks: Looks

    def __call__(self, event: Any, _context: Any) -> dict[str, Any]:
        """Return what was asked for. Raises QueueUnavailable: the event then comes again."""
        start, end = minute(event, time.time())
        followed = [target for target in self.settings.targets if not target.suspend]
        first = {target.cluster: target for target in reversed(followed)}
        seen = self.looks.all({cluster: partial(self._summaries, target) for cluster, target in first.items()})
        found = {target.name: seen[target.cluster] for target in followed}
        asked = self._in_turn(by_clock(self.settings, start, end), found, start)
        taken = {job.target for job in asked}
        due = [name for name, summaries in found.items() if name not in taken and _is_due(name, summaries, start, end)]
        self.queue.put_all([*asked, *(Job(name, "tick") for name in due)])
        unread = {first[cluster].name: str(error) for cluster, error in seen.items() if isinstance(error, AnnealError)}
        told = {"ticks": len(asked), "due": due, "unread": unread}
        _LOG.log(logging.WARNING if unread else logging.INFO, "schedule", extra={"fields": {"minute": start, **told}})
        return told

    def _in_turn(self, jobs: Sequence[Job], found: Mapping[str, Any], start: float) -> list[Job]:
        """Return the jobs, of each silent cluster only one: another one in another minute."""
        silent: dict[Any, list[Job]] = {}
        kept: list[Job] = []
        for job in jobs:
            target = self.settings.target(job.target)
            if target and isinstance(found[job.target], ClusterUnavailable):
                silent.setdefault(target.cluster, []).append(job)
            else:
                kept.append(job)
        return [*kept, *(waiting[int(start // MINUTE) % len(waiting)] for waiting in silent.values())]

    def _summaries(self, target: Target) -> dict[str, Summary]:
        """Return the summary of every state on a target's cluster that has one which can be read."""
        selector = f"{INSTALLATION}={self.settings.installation}"
        listed = self.records(target).overview("ConfigMap", self.settings.state_namespace, selector)
        texts = {str(_part(body, "labels").get(TARGET)): str(_part(body, "annotations").get(SUMMARY) or "") for body in listed}
        return {name: summary for name, text in texts.items() if (summary := read_summary(text))}


def _is_due(name: str, found: Any, start: float, end: float) -> bool:
    summary = found.get(name) if isinstance(found, dict) else None
    return isinstance(summary, Summary) and by_record(name, summary, start, end)


def _part(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (body.get("metadata") or {}).get(name) or {}
    return found


def minutes(environ: Mapping[str, str]) -> Minutes:
    """Make the schedule; it resolves no secret of a host or a sender. Raises ConfigInvalid, SecretUnavailable, QueueInvalid."""
    base = ground(environ, ())
    handler = Once(lambda: clusters(base, environ))
    return Minutes(base.settings, base.queue, lambda target: handler.get().records(target), Looks(PATIENCE))
