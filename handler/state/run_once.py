"""What a run does by the command that asked for it, and not by its target's settings: other runs would do otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from handler.state.record_format import Tool


@dataclass(frozen=True, slots=True)
class RunOnce:
    """What one command does that the settings of its target don't say, so that it alone goes on with it.

    `adopt`: the owners that `anneal adopt` takes over from; `prune`: it is `anneal prune`.
    """

    adopt: tuple[Tool, ...] = ()
    prune: bool = False


AS_CONFIGURED = RunOnce()
"""A run that does what its target's settings say."""
