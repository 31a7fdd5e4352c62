"""How a live object does, in kstatus' words, and how all objects of a target do. Pure values; `handler.health.kstatus` judges."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from handler.model.field_masking import without_credentials


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
    """A verdict. `message`: what is missing, why it failed, or a note. `again`: seconds until time alone may change it; 0: never."""

    status: Status
    message: str = ""
    again: float = 0.0

    def told(self, *, closed: bool) -> str:
        """Return it in words; `closed`: nothing that the cluster says of the object is repeated (`handler.plan.closed`)."""
        return str(self.status) if closed or not self.message else without_credentials(self.message)

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


IN_PROGRESS, FAILED, CURRENT, NOTHING = "inProgress", "failed", "current", ""
"""The expressions, by their names in the configuration; NOTHING: none of them is true."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Which expression decided. `wrong`: why it can't be evaluated; `spent`: that is because it takes too many steps."""

    name: str
    wrong: str = ""
    spent: bool = False

    def encode(self) -> bytes:
        """Write it."""
        return json.dumps([self.name, self.wrong, self.spent]).encode()

    @classmethod
    def decode(cls, data: bytes) -> Answer:
        """Read it strictly, for the child isn't believed. Raises ValueError: it is something else."""
        match json.loads(data):
            case [str(name), str(wrong), bool(spent)] if name in (IN_PROGRESS, FAILED, CURRENT):
                return cls(name, wrong, spent)
            case ["", "", False]:
                return cls(NOTHING)
        raise ValueError("no answer of an expression")
