"""One document of a file: the value between reading and checking."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MAX_BYTES = 10_000_000
MAX_ROLLOUT_BYTES = 1_000_000
MAX_NODES = 1_000_000
MAX_DEPTH = 200
Standing = dict[str, tuple[int, "Standing"]]
"""What stands in a mapping or sequence, by its key or `[0]`: its line, and what stands in it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document. `lines`: where mappings near its top begin, by `id`; `standing`: where everything in it stands (`lines.py` only)."""

    path: str
    line: int
    value: Any
    lines: dict[int, int] = field(default_factory=dict, repr=False)
    standing: Standing = field(default_factory=dict, repr=False)

    def place(self, part: object = None) -> str:
        """Return `file:line` of a part of the document, or of the whole."""
        return f"{self.path}:{self.lines.get(id(part), self.line)}"


def line_at(data: bytes, offset: int) -> int:
    """Return the line number, from 1, of a byte."""
    return data.count(b"\n", 0, max(offset, 0)) + 1
