"""How a render child's result is written on the pipe and read again. One file, so that both ends agree.

Law: the child isn't believed. What arrives is read strictly, never unpickled, and an object's identity and canonical form are computed
again from its body: a child that was taken over can at most declare objects, which the plan judges like any others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from handler.model.errors import Problem
from handler.model.manifest import Manifest
from handler.model.tree import printable

Row = Manifest | Problem
MAX_NOTE = 1_000


def encode(row: Row) -> bytes:
    """Write one object or mistake."""
    if isinstance(row, Manifest):
        return b"M" + json.dumps([row.place, row.item]).encode() + b"\n" + row.raw
    return b"P" + json.dumps([row.subject, row.message, row.place, row.fix]).encode()


def decode(frame: bytes) -> Row:
    """Read one object or mistake. Raises ValueError: the frame is neither."""
    if frame[:1] == b"M":
        head, _, raw = frame[1:].partition(b"\n")
        facts, body = json.loads(head), json.loads(raw)
        if _is_head(facts) and isinstance(body, dict) and isinstance(body.get("metadata"), dict):
            return Manifest.of(body, *facts)
    return decode_problem(frame)


def decode_problem(frame: bytes) -> Problem:
    """Read one mistake. Raises ValueError: the frame is none."""
    facts = json.loads(frame[1:]) if frame[:1] == b"P" else None
    if isinstance(facts, list) and len(facts) == 4 and all(isinstance(fact, str) for fact in facts):
        return Problem(*facts)
    raise ValueError("neither an object nor a mistake")


def encode_note(text: str) -> bytes:
    """Write what a plan should say of a render."""
    return b"N" + text.encode()


def decode_noted(frame: bytes) -> Row | str:
    """Read one object, mistake or note. Raises ValueError: the frame is neither."""
    return printable(frame[1:].decode(), MAX_NOTE) if frame[:1] == b"N" else decode(frame)


def encode_lines(lines: Sequence[int]) -> bytes:
    """Write line numbers."""
    return json.dumps(lines).encode()


def decode_lines(frame: bytes, count: int, last: int) -> list[int]:
    """Read so many line numbers, of a file that has no more lines than `last`; 0: not known. Raises ValueError: it is something else."""
    facts = json.loads(frame)
    if isinstance(facts, list) and len(facts) == count and all(type(line) is int and 0 <= line <= last for line in facts):
        return facts
    raise ValueError("no line numbers")


def _is_head(facts: object) -> bool:
    return isinstance(facts, list) and len(facts) == 2 and isinstance(facts[0], str) and type(facts[1]) is int
