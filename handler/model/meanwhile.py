"""What goes on around a run that waits: who else asks for its target, and that its place may be another's meanwhile."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from handler.model.event import Job


class Meanwhile(Protocol):
    """The queue, as one run sees it."""

    def asked(self) -> tuple[Job, ...]:
        """Return what waits in this process's queue for the run's target, the oldest first."""

    def resting(self) -> AbstractContextManager[object]:
        """Leave the run's place among those that work to another one, for as long as it only waits."""


class Alone:
    """Nobody else asks in this process: a command, a test, a function."""

    def asked(self) -> tuple[Job, ...]:
        """Return nothing."""
        return ()

    def resting(self) -> AbstractContextManager[object]:
        """Keep the place."""
        return nullcontext()


ALONE = Alone()
