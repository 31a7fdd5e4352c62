"""Jobs that remove themselves once they have finished, as the record remembers that they were applied."""

from __future__ import annotations

from dataclasses import dataclass

from handler.model.names import Identity
from handler.state.record_format import Sha


@dataclass(frozen=True, slots=True)
class Ran:
    """One of them, by the digest of its declaration. `open`: by the open attempt, not by the recorded commit.

    `declared` is empty where a record of format 1 names it: as the recorded set declares it, which `digest` of the state stands for.
    """

    identity: Identity
    declared: Sha = ""
    open: bool = False
