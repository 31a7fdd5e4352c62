"""A step's checks, run while its object is followed: all of `success` must pass at once, the first of `failure` that holds ends it.

Law: one LIST and WATCH; what only time or metrics change is looked at again by the beat. Time counts from the step's begin, which stands in
the journal: a run that was cut goes on with what time is left. A time-out is a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from handler.model.names import Identity
from handler.model.resource import Resource
from handler.model.rollout import Check
from handler.run.waiting import Waits


@dataclass(frozen=True, slots=True)
class Watched:
    """What is watched, and for what.

    `what`: as the record and errors call it. `resource`: None: its kind isn't served (any more). `since`: when the step began, seconds
    since the epoch. `generation`: of the object as our write returned it, 0: unknown. `place`: file:line of its manifest. `hold`: seconds
    since `since` that it lasts at least, however well everything looks. `expires`: a Job that its TTL may remove.
    """

    what: str
    resource: Resource | None
    identity: Identity
    success: tuple[Check, ...]
    failure: tuple[Check, ...]
    since: float
    generation: int = 0
    place: str = ""
    hold: float = 0.0
    expires: bool = False


def _nothing() -> None:
    return


def _silent(_message: str) -> None:
    return


def check(waits: Waits, watched: Watched, beat: Callable[[], None] = _nothing, tell: Callable[[str], None] = _silent) -> str:
    """Wait until everything of `success` passes; return what was seen, one line.

    Args:
        waits: the run's waits.
        watched: the object and its checks. Without `success` nothing is waited for but `hold`.
        beat: called several times a second; what it raises ends the wait.
        tell: called with how far it has come, when that changes; masked, one line (`StepStage.tell`).

    Raises:
        RolloutFailed: a failure check holds, a success check has failed or its time is over; each with what was compared and seen.
        NewerHead, StillWaiting, Stopping, Suspended, LeaseLost: the wait ended before that.

    """
    raise NotImplementedError
