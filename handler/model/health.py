"""How a live object does, in kstatus' words, and how all objects of a target do. Pure values; `handler.health.kstatus` judges."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """Where an object stands on its way to what was asked of it (kstatus)."""

    CURRENT = "current"
    IN_PROGRESS = "in progress"
    FAILED = "failed"
    TERMINATING = "terminating"
    NOT_FOUND = "not found"
    UNKNOWN = "unknown"
    """It could not be judged: neither healthy nor failed."""


@dataclass(frozen=True, slots=True)
class Health:
    """A verdict over one object.

    `message`: what is missing, or why it failed, as a person would say it; of a healthy one a note (a Service without an address).
    `again`: in how many seconds time alone may change the verdict; 0: only another state of the object does.
    """

    status: Status
    message: str = ""
    again: float = 0.0

    @property
    def healthy(self) -> bool:
        """Whether nothing is waited for any more."""
        return self.status is Status.CURRENT


class HealthState(StrEnum):
    """How a target does, whatever its last run came to."""

    HEALTHY = "healthy"
    PROGRESSING = "progressing"
    DEGRADED = "degraded"
    UNKNOWN = "unknown"

    @classmethod
    def _missing_(cls, value: object) -> HealthState:  # noqa: ARG003 - an edited record may hold any word
        return cls.UNKNOWN
