"""What overviews and ticks read of a state from metadata alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from handler.model.manifest import canonical
from handler.state.record import FORMAT, State
from handler.state.rules import Sha, Time, Word


@dataclass(frozen=True, slots=True)
class Summary:
    """What overviews and ticks read from metadata alone, at most 1 KB. `attempt`, `pin`: commits; `unhealthy`: how many.

    `home`: the `home_of` the state; `asked`: a run was asked for that hasn't begun; `orphans`, `drifted`: how many objects.
    `health`, `health_since`, `judged`: see `TargetHealth`.
    """

    commit: Sha = ""
    settings: Sha = ""
    phase: Word = ""
    unhealthy: int = 0
    attempt: Sha = ""
    pin: Sha = ""
    next_try: Time = ""
    drift_due: Time = ""
    held: bool = False
    suspended: bool = False
    home: Sha = ""
    asked: bool = False
    orphans: int = 0
    drifted: int = 0
    health: Word = ""
    health_since: Time = ""
    judged: Time = ""

    @classmethod
    def of(cls, state: State) -> Summary:
        """Sum up a state."""
        return cls(
            commit=state.commit,
            settings=state.settings,
            phase=state.status.phase,
            unhealthy=len(state.status.unhealthy),
            attempt=state.attempt.commit if state.attempt else "",
            pin=state.pin.commit if state.pin else "",
            next_try=state.status.next_try,
            drift_due=state.drift_due,
            held=state.held is not None,
            suspended=state.suspend is not None,
            home=home_of(state.repository, state.installation, state.cluster_uid, state.format),
            asked=state.requested is not None,
            orphans=len(state.orphans),
            drifted=drifted(state),
            health=state.health.state,
            health_since=state.health.since,
            judged=state.health.judged,
        )


def home_of(repository: str, installation: str, cluster_uid: str, written: int = FORMAT) -> str:
    """Return the digest of where a state belongs, and of its format: a reader that expects another one reads the state itself."""
    return hashlib.sha256(canonical([written, repository, installation, cluster_uid])).hexdigest()


def drifted(state: State) -> int:
    """Return how many objects a drift run reported, and didn't repair."""
    return len({drift.identity for drift in state.drift})
