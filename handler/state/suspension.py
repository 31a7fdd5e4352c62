"""Whether a target is suspended: by the configuration, or by a person in its record."""

from __future__ import annotations

from handler.config.settings import Target
from handler.state.record import State, Suspend
from handler.state.summary import Summary

CONFIGURED = Suspend("anneal.yaml")


def suspension(target: Target, known: State | Summary | None, now: float) -> Suspend | None:
    """Return the pause of a target at `now`: CONFIGURED, or that of its record; None: there is none, or it has ended."""
    if target.suspend:
        return CONFIGURED
    return known.suspension(now) if known else None
