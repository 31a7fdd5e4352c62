"""How long a target has kept healthy what it recorded: the proof by which other targets follow it. Pure.

    recorded with other reads or settings     a soak begins, and the one before ends
    another commit that reads the same        the soak goes on, for that commit, too
    not healthy, or judged by none            its clock starts again, once it is healthy
    an attempt for something else opens       it ends: replaced, or rolled back from

Law: a record keeps times, never a verdict: the target that follows decides how long is long enough. What isn't known for certain counts as
a break. Nothing is written for a soak alone: it is brought up to date by each write of the record (`StateStore`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from handler.model.health import HealthState
from handler.state.record_format import Sha, Time, Word, seconds_of, stamp

if TYPE_CHECKING:
    from handler.state.record import Attempt, State, TargetHealth

MOST = 10  # soaks of a record
GLIMPSED = 3  # soaks of a summary
COMMITS = 5  # commits of a soak
REPLACED, ROLLED_BACK = "replaced", "rolled-back"
_COMMIT = re.compile("[0-9a-f]{40,64}")
KnownHealth = Callable[["State"], "TargetHealth"]
"""Returns a record's health as it is known now; its `since` is at most as early as it was judged without a gap."""


@dataclass(frozen=True, slots=True)
class Soak:
    """One stretch in which a target had the same reads and settings. `commits`: the last that were recorded with them, the newest first.

    `healthy_since`: since when it is, or was at its end, healthy without a break; empty: it isn't. `until`: its end, and `ended` says how;
    both empty: it goes on.
    """

    commits: tuple[Sha, ...]
    reads: Sha
    settings: Sha
    since: Time
    until: Time = ""
    healthy_since: Time = ""
    ended: Word = ""


def glimpse(soak: Soak) -> str:
    """Return what a summary shows of a soak, in one short text."""
    moments = (f"{seconds_of(moment):.0f}" if moment else "-" for moment in (soak.since, soak.until, soak.healthy_since))
    return " ".join((soak.commits[0], *moments, soak.ended or "-"))


def glimpsed(text: str) -> Soak:
    """Return the soak that `glimpse` shows, with its newest commit alone and without its reads. Raises ValueError: it is none."""
    commit, *moments, ended = text.split(" ")
    if not _COMMIT.fullmatch(commit) or ended not in ("-", REPLACED, ROLLED_BACK) or len(moments) != 3:
        raise ValueError("expected a soak")
    since, until, healthy_since = ("" if moment == "-" else stamp(int(moment)) for moment in moments)
    return Soak((commit,), "", "", since, until, healthy_since, "" if ended == "-" else ended)


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
    if pin is None or pin.commit != commit or pin == before.pin:
        return False
    return before.pin is None or pin.automatic or pin.reason.startswith("rollback")
