"""What a run was made from: the record keeps its digests, and the next run, an approval and a rollout are compared with them."""

from __future__ import annotations

from dataclasses import dataclass

from handler.engine.planner.desired import Prepared
from handler.model.tree import CommitInfo
from handler.state.record import Approval


@dataclass(frozen=True, slots=True)
class Inputs:
    """From what a run was made: the record compares these. `settings`: digest of the target's settings; `repository`: its URL."""

    prepared: Prepared
    settings: str
    repository: str = ""
    path: str = ""

    @property
    def reads(self) -> str:
        """Digest of the read set."""
        return self.prepared.reads.digest()

    @property
    def commit(self) -> CommitInfo:
        """The commit."""
        return self.prepared.commit

    def are_of(self, approval: Approval | None) -> bool:
        """Whether an approval was given for the same inputs."""
        return approval is not None and (approval.reads, approval.settings) == (self.reads, self.settings)
