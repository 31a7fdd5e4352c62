"""Single flight: a question to a git host under way, asked once, and its end for all that wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from handler.model.errors import AnnealError, GitUnavailable

T = TypeVar("T")


@dataclass(slots=True)
class Flight(Generic[T]):
    """One question. `sent`: monotonic seconds just before it was asked. The caller that asks sets `landed` whatever happens."""

    sent: float = 0.0
    landed: threading.Event = field(default_factory=threading.Event)
    answer: T | None = None
    error: AnnealError | None = None

    def fly(self, ask: Callable[[], T]) -> T:
        """Ask, and note the end. The caller removes its entry before setting `landed`."""
        try:
            self.answer = ask()
        except AnnealError as error:
            self.error = error
            raise
        else:
            return self.answer

    def wait(self, subject: str) -> T:
        """Return what another thread was answered; raise its AnnealError anew, or GitUnavailable of `subject` after a mistake of ours."""
        self.landed.wait()
        if self.answer is not None:
            return self.answer
        if self.error:
            raise type(self.error)(*self.error.problems)
        raise GitUnavailable.of(subject, "another run asked the host for it, and failed unexpectedly; see the log")
