"""Other targets' records, as a run that waits for them sees them: read only, never written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from handler.state.record import State, TargetHealth


@dataclass(frozen=True, slots=True)
class OtherRecord:
    """One target's record. `state`: None: it never ran; `health`: as it is known now, watches included."""

    target: str
    state: State | None = None
    health: TargetHealth = field(default_factory=TargetHealth)


class OtherRecords(Protocol):
    """What one target's runs know of others, by name."""

    def read(self, target: str) -> OtherRecord:
        """Return a target's record. Raises AnnealError: its cluster doesn't answer, or the record isn't that target's."""


class NoOtherRecords:
    """A target that waits for no other."""

    def read(self, target: str) -> OtherRecord:
        """Know of no record."""
        return OtherRecord(target)
