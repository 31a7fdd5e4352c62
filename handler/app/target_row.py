"""One target as a look at its cluster and git host found it, and how much it needs a person. Values; `overview` looks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from handler.config.settings import Target
from handler.engine.run.promotion_claims import Awaited
from handler.model.errors import AnnealError
from handler.model.health import HealthState
from handler.model.instance import template_of
from handler.model.tree import CommitInfo
from handler.state.heartbeat import UNREAD, Pulse
from handler.state.lease import Peek
from handler.state.record import State
from handler.state.summary import Summary
from handler.state.suspension import suspension


class Level(IntEnum):
    """How much a target needs a person, the most first."""

    UNREAD = 0
    FAILED = 1
    HELD = 2
    UNSERVED = 3
    OFF = 4
    UNFOLLOWED = 5
    MOVING = 6
    WELL = 7


TROUBLE = frozenset({Level.FAILED, Level.HELD, Level.UNSERVED, Level.OFF})
UNWELL = TROUBLE - {Level.UNSERVED}
"""Levels of instances in trouble of their own: what no server looks after is their template's."""
NOT_KNOWN = frozenset({Level.UNREAD, Level.UNFOLLOWED})
"""Levels of what couldn't be asked: a cluster or record, and a git host."""


@dataclass(frozen=True, slots=True)
class NewestCommit:
    """What git has, or others have proven. `info`: what history shows of it, asked only where it isn't applied.

    `trouble`: why it isn't known; `awaited`: what the next one waits for.
    """

    commit: str = ""
    info: CommitInfo | None = None
    trouble: AnnealError | None = None
    awaited: tuple[Awaited, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetRow:
    """What one look found of a target. `recorded`: whether it has a record; None: not known. `now`: the API server's time.

    `summary`: of that record, with its health as it is known now. `state`, `lease`: read (`whole`) of the first in trouble only. `newest`:
    None: git wasn't asked. `doubt`: why it isn't known whether the record is of this cluster. `instances`: of a template, how many have a
    record, and how many of them are in trouble (`unwell`); None: it is none. `members`: of a target without a record, how many objects of
    it were found; None: not known.
    """

    target: Target
    now: float
    recorded: bool | None = None
    summary: Summary = field(default_factory=Summary)
    pulse: Pulse = UNREAD
    trouble: AnnealError | None = None
    state: State | None = None
    lease: Peek | None = None
    whole: bool = False
    newest: NewestCommit | None = None
    doubt: AnnealError | None = None
    instances: int | None = None
    unwell: int = 0
    members: int | None = None

    @property
    def phase(self) -> str:
        """The target's phase in a word."""
        if self.recorded is None:
            return "unknown" if self.trouble else "asking"
        if not self.recorded:
            lost = "record-missing" if self.members else "no-record" if self.members is None else "never-ran"
            return "template" if self.target.is_template else lost
        if suspension(self.target, self.summary, self.now):
            return "suspended"
        return self.summary.phase or "new"

    @property
    def is_behind(self) -> bool:
        """Whether git has another commit than is applied; a pinned target isn't meant to follow."""
        found = self.newest.commit if self.newest else ""
        known = bool(found) and bool(self.recorded) and not self.target.is_template  # whose instances have commits
        return known and found != self.summary.commit and not self.summary.pin

    @property
    def looked_after(self) -> str:
        """The configured target by whose name servers say that they look after this one: of an instance its template."""
        return template_of(self.target.name)

    @property
    def is_served(self) -> bool | None:
        """Whether a running server looks after the target; None: not known, or it is a directory, which people apply."""
        found = self.pulse.server(self.looked_after) is not None
        return True if found else False if self.pulse.readable and not self.target.repository.is_directory else None

    @property
    def unserved(self) -> bool:
        """Whether certainly no running server looks after the target; a directory needs none."""
        return self.is_served is False

    @property
    def level(self) -> Level:
        """How much the target needs a person."""
        if self.trouble or self.recorded is None:
            return Level.UNREAD
        return next(level for level, holds in self._levels() if holds)

    def _levels(self) -> Iterator[tuple[Level, bool]]:
        known, health = self.summary, self.summary.health
        yield Level.FAILED, known.phase in ("failed", "pruning") or bool(known.renamed_to) or health == HealthState.DEGRADED
        yield Level.HELD, known.held
        paused = self.phase == "suspended"
        yield Level.UNSERVED, self.unserved and not paused and (self.pulse.last is not None or self._waits)
        unknown = not self.recorded or self._differs or health in ("", HealthState.UNKNOWN)
        yield Level.OFF, not paused and unknown and not self.target.is_template
        yield Level.UNFOLLOWED, self.newest is not None and self.newest.trouble is not None
        moves = known.phase in ("waiting", "rolling-out") or health == HealthState.PROGRESSING
        yield Level.MOVING, moves or paused or bool(known.attempt or known.pin or known.orphans or known.former) or self.is_behind
        yield Level.WELL, True

    @property
    def _differs(self) -> bool:
        """Whether the cluster isn't as git says: it has drifted, or the newest commit failed and was rolled back."""
        pin = self.state.pin if self.state else None
        return bool(self.summary.drifted) or (pin is not None and pin.automatic)

    @property
    def _waits(self) -> bool:
        known = self.summary
        return self.is_behind or bool(known.next_try or known.attempt or known.asked or known.drift_due)
