"""The schedule of functions: an event each minute asks for the ticks and drift runs of that minute, and for what records say is due.

Law: nothing is remembered from one event to the next. A target's moments follow from its name and the clock; each event asks for the minute
before its own, too, and the queue deduplicates by moment: a missing event loses nothing, a repeated or late one adds nothing. Targets that
the configuration suspends are left out, and templates, whose objects only a process that lives can follow; a target that a person has
suspended is asked about at its own pace, for its pause may have ended.

What is due by records is read from one metadata LIST a cluster, all at once. Of a silent cluster one target a minute, in turn, is
asked about, so that it delays no other. Last the heartbeat of each cluster that has answered is renewed.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from handler import __version__
from handler.app import record_summaries
from handler.app.cluster_looks import ClusterLooks
from handler.app.record_summaries import Readable
from handler.config.settings import Settings, Target
from handler.functions import Lazy
from handler.functions.bootstrap import Added, bootstrap, clusters, without_templates
from handler.model.errors import AnnealError, ClusterUnavailable
from handler.model.event import Job
from handler.queues import Queue
from handler.state.heartbeat import Heartbeat, Signs
from handler.state.record_format import seconds_of
from handler.state.summary import Summary
from handler.triggers.schedule import due_between

_LOG = logging.getLogger("anneal.schedule")
MINUTE = 60.0
WINDOW = 2
"""Of how many minutes an event asks for what fell due; fewer than the five for which the queue knows what it was asked."""
AGAIN = 300.0
"""Seconds between two questions for what is due and stays so: a run that dies before it can say anything isn't asked for each minute."""
PATIENCE = 5.0  # seconds that clusters have to answer
FUNCTION = "AWS_LAMBDA_FUNCTION_NAME"
Records = Callable[[Target], Readable]


def window(event: Any, now: float) -> tuple[float, float]:
    """Return the whole minutes before an event, as start and end in seconds since the epoch; `now` counts where the event names no time."""
    given = event.get("time") if isinstance(event, Mapping) else None
    try:
        at = datetime.fromisoformat(given).astimezone(UTC).timestamp() if isinstance(given, str) else now
    except (ValueError, OverflowError):
        at = now
    end = at // MINUTE * MINUTE
    return end - WINDOW * MINUTE, end


def by_clock(settings: Settings, start: float, end: float) -> tuple[Job, ...]:
    """Return the newest drift run and tick of each target between two times.

    A drift run does what a tick does, and takes the place of one that falls into the same minute, in whichever window that is.
    """
    followed = [target for target in settings.targets if not target.suspend]
    drifting = [target.name for target in followed if target.drift != "ignore"]
    drifts = due_between(drifting, settings.drift_interval, start, end)
    ticks = due_between((target.name for target in followed), settings.interval, start, end)

    def stands_for(name: str, at: float) -> bool:
        begin = at // MINUTE * MINUTE
        return name in drifts and bool(due_between((name,), settings.drift_interval, begin, begin + MINUTE))

    kept = {name: at for name, at in ticks.items() if not stands_for(name, at)}
    return (*(Job(name, "drift", moment=at) for name, at in drifts.items()), *(Job(name, "tick", moment=at) for name, at in kept.items()))


def by_record(name: str, summary: Summary, start: float, end: float) -> float:
    """Return for which moment between two times a target's record asks for a run; 0: for none.

    A retry or a drift run is asked for once when its time comes; overdue ones, an open attempt (it may be under way), requests not
    begun yet, and ends that a git host doesn't show yet every few minutes; the last of a suspended target, too.
    """
    if summary.suspension(end):
        return due_between((name,), AGAIN, start, end).get(name, 0.0) if summary.owes else 0.0
    times = [seconds_of(text) for text in (summary.next_try, summary.drift_due) if text]
    if fallen := [at for at in times if start <= at < end]:
        return max(fallen)
    overdue = summary.attempt or summary.asked or summary.owes or any(at < start for at in times)
    return due_between((name,), AGAIN, start, end).get(name, 0.0) if overdue else 0.0


@dataclass(frozen=True, slots=True)
class Minutes:
    """Enqueues what a minute asks for. `records`: the way to a target's cluster, raises AnnealError."""

    settings: Settings
    queue: Queue
    records: Records
    looks: ClusterLooks

    def __call__(self, event: Any, _context: Any) -> dict[str, Any]:
        """Return what was asked for. Raises QueueUnavailable: the event then comes again."""
        start, end = window(event, time.time())
        followed = [target for target in self.settings.targets if not target.suspend]
        first = {target.cluster: target for target in reversed(followed)}
        seen = self.looks.all({cluster: partial(self._listed, target) for cluster, target in first.items()})
        found = {target.name: seen[target.cluster] for target in followed}
        asked = self._by_clock(found, start, end)
        taken = {job.target for job in asked}
        due = [job for job in self._by_record(found, start, end) if job.target not in taken]
        self.queue.put_all([*asked, *due])
        self._beat([each for cluster, each in first.items() if not isinstance(seen[cluster], AnnealError)], taken)
        unread = {first[cluster].name: str(error) for cluster, error in seen.items() if isinstance(error, AnnealError)}
        fields = {"ticks": len(asked), "due": [job.target for job in due], "unread": unread}
        _LOG.log(logging.WARNING if unread else logging.INFO, "schedule", extra={"fields": {"minute": end - MINUTE, **fields}})
        return fields

    def _by_clock(self, found: Mapping[str, Any], start: float, end: float) -> list[Job]:
        """Return what the clock asks for; of each silent cluster only what it asks for the target whose turn it is."""
        silent: dict[Any, list[Target]] = {}
        for target in self.settings.targets:
            if isinstance(found.get(target.name), ClusterUnavailable):
                silent.setdefault(target.cluster, []).append(target)
        jobs = [job for job in by_clock(self.settings, start, end) if not isinstance(found[job.target], ClusterUnavailable)]
        for targets in silent.values():
            for number in range(WINDOW):
                jobs += self._in_turn(targets, end - number * MINUTE)
        return jobs

    def _in_turn(self, targets: list[Target], end: float) -> tuple[Job, ...]:
        """Return what the clock has asked for one of these since its turn before; each has its turn once in as many minutes as they are."""
        mine = targets[int(end // MINUTE) % len(targets)]
        return by_clock(replace(self.settings, targets=(mine,)), end - len(targets) * MINUTE, end)[:1]

    def _by_record(self, found: Mapping[str, Any], start: float, end: float) -> list[Job]:
        known = {name: record_summaries.of_target(each, self.settings, name) for name, each in found.items() if isinstance(each, dict)}
        moments = {name: by_record(name, summary, start, end) for name, summary in known.items() if summary}
        return [Job(name, "tick", moment=at) for name, at in moments.items() if at]

    def _beat(self, clusters: list[Target], asked: set[str]) -> None:
        """Renew the heartbeats of the clusters of these targets. `asked`: whose look was asked for just now."""
        found = self.looks.all({("heartbeat", target.cluster): partial(self._renew, target, asked) for target in clusters})
        for (_, cluster), error in found.items():
            if isinstance(error, AnnealError):
                fields = {"cluster": cluster.name, "why": str(error), "code": error.code}
                _LOG.warning("the heartbeat can't be renewed", extra={"fields": fields})

    def _renew(self, target: Target, asked: set[str]) -> None:
        settings = self.settings
        mine = [each.name for each in settings.targets if each.cluster == target.cluster]
        looks = {name: 0.0 if name in asked else math.inf for name in mine}
        signs = Signs(os.environ.get(FUNCTION, "schedule"), __version__, looks)
        Heartbeat(self.records(target), settings.state_namespace, settings.installation).renew(signs)

    def _listed(self, target: Target) -> dict[str, dict[str, Any]]:
        return record_summaries.listed(self.records(target), self.settings)


def minutes(environ: Mapping[str, str], added: Added = None) -> Minutes:
    """Make the schedule; it resolves no secret of a host or a sender. Raises ConfigInvalid, SecretUnavailable, QueueInvalid."""
    base = bootstrap(environ, (), added)
    handler = Lazy(lambda: clusters(base, environ))
    return Minutes(without_templates(base.settings), base.queue, lambda target: handler.get().records(target), ClusterLooks(PATIENCE))
