"""What a wait of a rollout has seen and hasn't seen change since: how patience counts over the runs that share the wait."""

from __future__ import annotations

from dataclasses import dataclass

from handler.state.record_format import Line, Time


@dataclass(frozen=True, slots=True)
class Stalled:
    """One thing that stands still. `seen`: digest of how it stands, in few digits; `moved`: since when it stands so."""

    seen: Line
    moved: Time
