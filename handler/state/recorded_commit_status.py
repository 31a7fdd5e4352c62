"""What the host of a target's repository says of its commits, or is still to say: a part of the record."""

from __future__ import annotations

from dataclasses import dataclass

from handler.model.commit_status import StatusState
from handler.state.record_format import Line, Sha, Word

MOST = 20
"""Commits of which a record keeps the status."""
MOST_CHANGES = 50
"""How often the status of one commit changes, but for its last ends: GitHub takes 1,000 of a commit and context."""


@dataclass(frozen=True, slots=True)
class RecordedCommitStatus:
    """The status of one commit. `state`: a `StatusState`; `run`: which run ended so; `posted`: the host has it.

    `changes`: how often it has changed. `unless`: a commit that no run has aimed at, of which only a webhook spoke: its status counts where
    the host has it on the way to what came after it, and it doesn't read as what was recorded before, which this is the digest of.
    """

    commit: Sha
    state: Word
    text: Line
    run: Line = ""
    posted: bool = False
    unless: Sha = ""
    hinted: bool = False
    changes: int = 0

    @property
    def is_end(self) -> bool:
        """Whether it is to stay: what was begun goes on."""
        return self.state != StatusState.PENDING

    @property
    def is_owed(self) -> bool:
        """Whether it is an end that the host doesn't have."""
        return self.is_end and not self.posted
