"""A question to a git host under way, and its end for all who wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from handler.model.errors import AnnealError, GitUnavailable

T = TypeVar("T")


@dataclass(slots=True)
class Flight(Generic[T]):
    """One question. `sent`: monotonic seconds just before it was asked. Who asks sets `landed` whatever happens."""

    sent: float = 0.0
    landed: threading.Event = field(default_factory=threading.Event)
    answer: T | None = None
    error: AnnealError | None = None

    def fly(self, ask: Callable[[], T]) -> T:
        """Ask, and note the end; whoever keeps flights makes up his books before he sets `landed`."""
        try:
            self.answer = ask()
        except AnnealError as error:
            self.error = error
            raise
        else:
            return self.answer

    def wait(self, subject: str) -> T:
        """Return what another thread was answered.

        Raises:
            AnnealError: what the answer was told as; an exception belongs to one thread, so it is another one.
            GitUnavailable: the other thread met a mistake of ours; `subject` is what was asked for.
        """
        self.landed.wait()
        if self.answer is not None:
            return self.answer
        if self.error:
            raise type(self.error)(*self.error.problems)
        raise GitUnavailable.of(subject, "another run asked the host for it, and failed unexpectedly; see the log")
