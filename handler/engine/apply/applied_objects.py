"""The objects that a run has written, as the server returned them: noted by writers, read by waits and prune."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from handler.model.names import Identity


@dataclass(slots=True)
class AppliedObjects:
    """The objects of one run; several threads may note at once.

    `uids`: of what is declared, under whatever name it was found: nothing of it is pruned. `generations`: of the objects as the server
    returned them; their status must be of that generation.
    """

    uids: set[str] = field(default_factory=set)
    generations: dict[Identity, int] = field(default_factory=dict)

    def note(self, identity: Identity, stored: Mapping[str, Any]) -> None:
        """Note an object as the server returned it."""
        self.spare(str(stored["metadata"]["uid"]))
        self.generations[identity] = int(stored["metadata"].get("generation") or 0)

    def spare(self, uid: str) -> None:
        """Note what is declared and lives, though nothing of it was written."""
        self.uids.add(uid)

    def generation(self, identity: Identity) -> int:
        """Return the generation that an object's status must be of; 0: any."""
        return self.generations.get(identity, 0)
