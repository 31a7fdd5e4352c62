"""How the wait of a step, or of a wave of hooks, is kept: the journal says since when, and what hasn't changed since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from handler.engine.rollout_runner.journal import Journal
from handler.model.tree import printable
from handler.state.record import Stalled, StepRecord
from handler.state.record_format import seconds_of, stamp

_DIGITS = 12
"""Of a digest: a thousand steps may wait at once."""
_MOST = 20
"""Things of one step whose standstill counts over runs."""


@dataclass(slots=True)
class JournalWaitRecord:
    """A wait of one step; its own time-out ends it, and how it ended is its step's outcome.

    `name`: the step's group and name; `what`: what it waits for; `since`: when that began, in seconds since the epoch.
    """

    journal: Journal
    name: tuple[str, str]
    what: str
    since: float
    over: bool = False

    def __post_init__(self) -> None:
        """Report in one line."""
        self.what = printable(self.what)

    def note(self) -> None:
        """The journal has it already: the step began."""

    def end(self) -> None:
        """The journal will have it: the step fails."""

    def tell(self, unhealthy: tuple[str, ...]) -> None:
        """Record each object's line as the message of its hook, or of this step."""
        group, own = self.name
        for line in unhealthy:
            subject, _, said = line.partition(": ")
            self.journal.told(group, subject if self.journal.find(group, subject) else own, said)

    def moved(self, seen: str) -> float | None:
        """Compare with what the journal has."""
        found = self._found()
        return next((seconds_of(each.moved) for each in (found.stood if found else ()) if each.seen == seen[:_DIGITS]), None)

    def keep(self, seen: Mapping[str, float]) -> None:
        """Let the journal have it, when it is written next."""
        stood = tuple(Stalled(digest[:_DIGITS], stamp(moved)) for digest, moved in seen.items())[:_MOST]
        self.journal.stood(*self.name, stood)

    def _found(self) -> StepRecord | None:
        return self.journal.find(*self.name)
