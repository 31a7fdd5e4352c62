"""A record with a long list as gzipped JSON, made of chunks: a change of one item costs its chunk, not the list.

Deflated chunks that end at a whole byte, one after the other, are one stream (RFC 1951, section 3.2; RFC 1952, section 2.3). A chunk is
cached by the identity of its items, which are frozen.
"""

from __future__ import annotations

import base64
import itertools
import json
import struct
import zlib
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from operator import is_
from typing import Any

from handler.model.to_json import camel
from handler.state.record_format import field_rule, read_record, write_record

SIZE = 32  # items of one chunk
_REMEMBERED = 512  # chunks: those of a few rollouts of a thousand steps each, now and before their last change
_HEADER = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF))
_END = b"\x03\x00"  # the last block of a deflate stream, empty


@dataclass(frozen=True, slots=True)
class _Chunk:
    """JSON, the same deflated up to a whole byte, and what it reads as."""

    text: bytes
    packed: bytes
    read: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Items:
    """Items of one field of a record class, compared by identity: by value takes longer."""

    form: Any
    name: str
    items: tuple[Any, ...]

    def __hash__(self) -> int:
        return hash((self.form, self.name, *map(id, self.items)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Items) or (self.form, self.name, len(self.items)) != (other.form, other.name, len(other.items)):
            return False
        return all(map(is_, self.items, other.items))


def gzipped(record: Any, name: str) -> tuple[str, Any, int]:
    """Write a frozen dataclass as `write_record` does, gzipped. `name`: its field with the long list, which has a default and isn't empty.

    Returns the gzip stream as base64, the record as it reads, its bytes of JSON. Raises ValueError: it couldn't be read again.
    """
    form, items = type(record), getattr(record, name)
    others = tuple(each.name for each in fields(form) if each.name != name)
    head = write_record(record, others)
    opening = _dumped(head)[:-1] + (b"," if head else b"") + _dumped(camel(name)) + b":["
    made = [_chunk(_Items(form, name, items[at : at + SIZE])) for at in range(0, len(items), SIZE)]
    separated = itertools.islice((part for chunk in made for part in (_COMMA, chunk)), 1, None)
    joined = [_deflated(opening), *separated, _deflated(b"]}")]
    text = b"".join(chunk.text for chunk in joined)
    packed = b"".join(chunk.packed for chunk in joined)
    stream = _HEADER + packed + _END + struct.pack("<LL", zlib.crc32(text), len(text) & 0xFFFFFFFF)
    read = tuple(item for chunk in made for item in chunk.read)
    return base64.b64encode(stream).decode(), replace(read_record(form, head, others), **{name: read}), len(text)


@lru_cache(_REMEMBERED)
def _chunk(some: _Items) -> _Chunk:
    """Write some items, and read them back; one that reads as it is stays the same."""
    rule = field_rule(some.form, some.name)
    text = _dumped(rule.write(some.items))
    read = (mine if mine == back else back for mine, back in zip(some.items, rule.read(json.loads(text)), strict=True))
    return _deflated(text[1:-1], tuple(read))


def _deflated(text: bytes, read: tuple[Any, ...] = ()) -> _Chunk:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return _Chunk(text, made.compress(text) + made.flush(zlib.Z_FULL_FLUSH), read)


_COMMA = _deflated(b",")


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
