"""Brings the soaks of a record up to date as it is written. Pure.

    recorded with other reads or settings     a soak begins, and the one before ends
    another commit that reads the same        the soak goes on, for that commit, too
    not healthy, or judged by none            its clock starts again, once it is healthy
    an attempt for something else opens       it ends: replaced, or rolled back from

Law: nothing is written for a soak alone, and no write forgets it (`StateStore`). What isn't known for certain counts as a break.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from handler.model.health import HealthState
from handler.state.record import Attempt, State, TargetHealth
from handler.state.record_format import stamp
from handler.state.soak import COMMITS, MOST, REPLACED, ROLLED_BACK, Soak

KnownHealth = Callable[[State], TargetHealth]
"""Returns a record's health as it is known now; its `since` is at most as early as it was judged without a gap."""


def kept(before: State | None, after: State, known: KnownHealth, now: float) -> State:
    """Return a record, about to be written over `before`, with its soaks brought up to date at `now` (seconds since the epoch)."""
    soaks = after.soaks
    current = soaks[0] if soaks and not soaks[0].ended else None
    if before and current and _aim(after) != (current.reads, current.settings):
        soaks, current = (_ended(current, before, after, known, now), *soaks[1:]), None
    if current and before:
        soaks = (_going_on(current, before, after, known, now), *soaks[1:])
    elif after.attempt is None and after.commit and after.reads:
        healthy = stamp(now) if after.health.state == HealthState.HEALTHY else ""
        soaks = (Soak((after.commit,), after.reads, after.settings, stamp(now), healthy_since=healthy), *soaks)[:MOST]
    return after if soaks == after.soaks else replace(after, soaks=soaks)


def _aim(state: State) -> tuple[str, str]:
    """Return reads and settings of what the target is on, or is being brought to."""
    found: Attempt | State = state.attempt or state
    return found.reads, found.settings


def _going_on(soak: Soak, before: State, after: State, known: KnownHealth, now: float) -> Soak:
    if after.attempt is None and after.commit not in soak.commits[:1]:
        commits = (after.commit, *(each for each in soak.commits if each != after.commit))
        soak = replace(soak, commits=commits[:COMMITS])
    failed = after.attempt is not None and after.status.phase == "failed"
    if failed or after.health.state != HealthState.HEALTHY:
        return replace(soak, healthy_since="")
    return replace(soak, healthy_since=_unbroken(soak, before, known) or stamp(now))


def _unbroken(soak: Soak, before: State, known: KnownHealth) -> str:
    """Return since when a soak is healthy, up to now; empty: it isn't, or none has judged it for too long."""
    if not soak.healthy_since or before.health.state != HealthState.HEALTHY:
        return ""
    health = known(before)
    return max(soak.healthy_since, health.since) if health.state == HealthState.HEALTHY else ""


def _ended(soak: Soak, before: State, after: State, known: KnownHealth, now: float) -> Soak:
    ended = ROLLED_BACK if _goes_back(before, after) else REPLACED
    return replace(soak, until=stamp(now), healthy_since=_unbroken(soak, before, known), ended=ended)


def _goes_back(before: State, after: State) -> bool:
    """Whether a pin takes the target away from what it was on. From one explicit commit to the next isn't back, but for a rollback."""
    pin, commit = after.pin, (after.attempt or after).commit
    if pin is None or pin.commit != commit:
        return False
    if pin == before.pin:  # asked for before the attempt opened, unless the target is there already; what was pinned before isn't known
        return before.commit != commit
    return before.pin is None or pin.automatic or pin.reason.startswith("rollback")
