"""A record with a long list as gzipped JSON, made of pieces: a change of one item costs its piece, not the list.

Pieces of JSON with commas between them are one JSON; deflated pieces that end at a whole byte, one after the other, are one stream (RFC
1951, section 3.2; RFC 1952, section 2.3). A piece is found again by the very items in it, which nobody can change, and is read back once.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from operator import is_
from typing import Any

from handler.model.to_json import camel
from handler.state.record_format import field_rule, read_record, write_record

SIZE = 32
"""Items of one piece."""
_REMEMBERED = 512
"""Pieces: those of a few rollouts of a thousand steps each, and what they were a moment ago."""
_HEADER = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF))
_END = b"\x03\x00"
"""The last block of a deflate stream, with nothing in it."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """JSON, the same deflated up to a whole byte, and what it reads as."""

    text: bytes
    packed: bytes
    read: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _These:
    """Items of one field of a record class, equal to the same items only: to compare what they say takes longer."""

    form: Any
    name: str
    items: tuple[Any, ...]

    def __hash__(self) -> int:
        return hash((self.form, self.name, *map(id, self.items)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _These) or (self.form, self.name, len(self.items)) != (other.form, other.name, len(other.items)):
            return False
        return all(map(is_, self.items, other.items))


def gzipped(record: Any, name: str) -> tuple[str, Any, int]:
    """Write a record as `rules.write_record` does, as JSON, gzipped.

    Args:
        record: a frozen dataclass.
        name: its field with the long list, which has a default and isn't empty.

    Returns:
        The gzip stream as base64, the record as it reads, how many bytes of JSON it is.

    Raises:
        ValueError: it couldn't be read again.

    """
    form, items = type(record), getattr(record, name)
    others = tuple(each.name for each in fields(form) if each.name != name)
    head = write_record(record, others)
    opening = _dumped(head)[:-1] + (b"," if head else b"") + _dumped(camel(name)) + b":["
    made = [_piece(_These(form, name, items[at : at + SIZE])) for at in range(0, len(items), SIZE)]
    joined = [_deflated(opening), *_with_commas(made), _deflated(b"]}")]
    text = b"".join(piece.text for piece in joined)
    packed = b"".join(piece.packed for piece in joined)
    stream = _HEADER + packed + _END + struct.pack("<LL", zlib.crc32(text), len(text) & 0xFFFFFFFF)
    read = tuple(item for piece in made for item in piece.read)
    return base64.b64encode(stream).decode(), replace(read_record(form, head, others), **{name: read}), len(text)


@lru_cache(_REMEMBERED)
def _piece(these: _These) -> _Piece:
    """Write some items, and read them back; one that reads as it is stays the same."""
    rule = field_rule(these.form, these.name)
    text = _dumped(rule.write(these.items))
    read = (mine if mine == back else back for mine, back in zip(these.items, rule.read(json.loads(text)), strict=True))
    return _deflated(text[1:-1], tuple(read))


def _deflated(text: bytes, read: tuple[Any, ...] = ()) -> _Piece:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return _Piece(text, made.compress(text) + made.flush(zlib.Z_FULL_FLUSH), read)


_COMMA = _deflated(b",")


def _with_commas(pieces: Iterable[_Piece]) -> Iterator[_Piece]:
    for number, piece in enumerate(pieces):
        if number:
            yield _COMMA
        yield piece


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
