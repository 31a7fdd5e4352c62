"""Summaries of all targets' records by one metadata LIST of a cluster; surveys, the schedule and status views share it.

Law: a summary counts only if its object is the target's own record; other ConfigMaps can't impersonate it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from handler import __version__
from handler.config.settings import Settings
from handler.model.errors import AnnealError
from handler.model.health import HealthState
from handler.model.instance import template_of
from handler.model.names import state_name
from handler.state import configmap, soak_update
from handler.state.cluster_port import Body, Kind, StateObjects
from handler.state.configmap import INSTALLATION, INSTANCE, SUMMARY, TARGET, foreign
from handler.state.heartbeat import INTERVALS, Beat, Heartbeat, known
from handler.state.known_summaries import summary_in
from handler.state.record import State, TargetHealth
from handler.state.record_format import seconds_of
from handler.state.summary import LONGEST, Summary

TOOLING = f"anneal/v{__version__}"
PATIENCE = 5.0
"""Seconds after which a cluster without an answer is reported to a reader, where no earlier result exists."""
Metadata = Mapping[str, Any]


class Readable(StateObjects, Protocol):
    """A cluster's state objects, with an overview of many at once."""

    def overview(self, kind: Kind, namespace: str, selector: str = "") -> list[Body]:
        """Return the metadata of all of a kind in a namespace."""


def listed(objects: Readable, settings: Settings) -> dict[str, dict[str, Any]]:
    """Return the metadata of every state of this installation on a cluster, by its name. Raises AnnealError.

    Of the installation before only what configured targets may take over: the rest may be another configuration's.
    """
    names = ",".join(filter(None, (settings.installation, settings.installation_from)))
    found = objects.overview("ConfigMap", settings.state_namespace, f"{INSTALLATION} in ({names})")
    ours = (body["metadata"] for body in found if _is_ours(body["metadata"].get("labels") or {}, settings))
    return {str(each["name"]): {**each, "annotations": _read(each.get("annotations") or {})} for each in ours}


def _read(annotations: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in annotations.items() if name in (configmap.TOOLING, SUMMARY, INSTANCE) and len(text) <= LONGEST}


def _is_ours(labels: Mapping[str, str], settings: Settings) -> bool:
    return labels.get(INSTALLATION) == settings.installation or settings.target(template_of(labels.get(TARGET, ""))) is not None


def summary_of(metadata: Metadata, settings: Settings, target: str) -> Summary | None:
    """Return the summary of a target's state; None where it isn't that target's record, or can't be read."""
    if foreign(dict(metadata), settings.state_namespace, target, TOOLING):
        return None
    return summary_in(metadata)


def health_now(health: TargetHealth, attempt: object, beat: Beat | None, now: float, settings: Settings) -> TargetHealth:
    """Return a recorded health as it is known at `now`. `beat`: the last watch; while an attempt is open, watches don't judge."""
    watched = beat if settings.health_interval and not attempt else None
    return known(health, watched, now, settings.drift_interval)


def summary_now(summary: Summary, beat: Beat | None, now: float, settings: Settings) -> Summary:
    """Return a summary with its health as it is known at `now`, and without a suspension that has ended."""
    recorded = TargetHealth(summary.health, summary.health_since, summary.judged)
    health = health_now(recorded, summary.attempt, beat, now, settings)
    return replace(summary, health=health.state, health_since=health.since, suspended=summary.suspension(now) is not None)


def of_target(found: Mapping[str, Metadata], settings: Settings, target: str) -> Summary | None:
    """Return a target's summary in such a list; None: there is none."""
    metadata = found.get(state_name(target))
    return None if metadata is None else summary_of(metadata, settings, target)


@dataclass(frozen=True, slots=True)
class HealthNow:
    """Knows the health of records of one place. `clock`: seconds since the epoch."""

    settings: Settings
    heartbeat: Heartbeat
    clock: Callable[[], float]

    def of(self, state: State) -> TargetHealth:
        """Return a record's health as it is known now; the heartbeat is read where a watch should have judged it again by now."""
        now, interval = self.clock(), INTERVALS * self.settings.health_interval
        known = partial(health_now, state.health, state.attempt, now=now, settings=self.settings)
        judged = seconds_of(state.health.judged) if state.health.judged else 0.0
        if not state.attempt and state.health.state and interval and now - judged > interval:
            try:
                return known(beat=self.heartbeat.read().watch(state.target))
            except AnnealError as error:
                seen = f"whether it is watched can't be seen: {error}"
                return replace(state.health, state=str(HealthState.UNKNOWN), since=state.health.judged, worst=(seen,))
        return known(beat=None)

    def keep(self, before: State | None, after: State) -> State:
        """Return a record with its soaks brought up to date (`StateStore`)."""
        return soak_update.kept(before, after, self.of, self.clock())
