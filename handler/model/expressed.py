"""What an entry of `healthCheckExprs` says of one object, as a child writes it and the worker reads it."""

from __future__ import annotations

import json
from dataclasses import dataclass

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
