"""A pack's bytes -> objects by id. Law: nothing is inflated before its declared size was counted against the limits.

dulwich reads headers, inflates and applies deltas. Its own resolver copies a base for each delta: hours of work for 20 MB. Here one pass is
enough: a delta that stands before its base waits for it. Ids are computed from the content.
"""

from __future__ import annotations

import zlib
from hashlib import sha1

from dulwich.errors import ApplyDeltaError, ChecksumMismatch
from dulwich.pack import (
    OFS_DELTA,
    REF_DELTA,
    UnpackedObject,
    apply_delta,
    obj_sha,
    read_pack_header_at,
    unpack_object_at,
)

from handler.model.errors import SourceRefused
from handler.source.git_objects import Objects
from handler.source.host_limits import HostLimits

_HEADER = 12
_TRAILER = 20
_LONGEST_NUMBER = 10  # bytes of a 64-bit number in git's variable-length coding
_WINDOW = 4096  # small: zlib copies what it is given beyond an object's end


class PackBroken(Exception):
    """The bytes aren't a pack: cut short, altered or made up."""


def read_pack(data: bytes | bytearray, limits: HostLimits, subject: str = "pack", spent: int = 0) -> Objects:
    """Read a pack. `spent`: bytes its commit holds already. Raises SourceRefused: a limit is passed; PackBroken: it is no sound pack."""
    if len(data) < _HEADER + _TRAILER:
        raise PackBroken("it is cut short")
    try:
        _, count = read_pack_header_at(bytes(data[:_HEADER]))
        if count > limits.objects:
            raise _over(subject, f"{count} objects, more than {limits.objects}")
        if sha1(memoryview(data)[:-_TRAILER], usedforsecurity=False).digest() != data[-_TRAILER:]:
            raise PackBroken("its checksum is wrong")
        return _Reader(data, limits, subject, spent).objects(count)
    except (
        ApplyDeltaError,
        AssertionError,
        ChecksumMismatch,
        IndexError,
        KeyError,
        TypeError,
        ValueError,
        zlib.error,
    ) as error:
        raise PackBroken(f"{type(error).__name__} while reading it") from None


class _Reader:
    """One pass over a pack. `at`: object by offset; `waiting`: deltas whose base comes later."""

    def __init__(self, data: bytes | bytearray, limits: HostLimits, subject: str, spent: int) -> None:
        self.data = data
        self.subject = subject
        self.limits = limits
        self.left = limits.inflated - spent
        self.at: dict[int, str] = {}
        self.found: Objects = {}
        self.waiting: dict[int | str, list[tuple[int, bytes]]] = {}

    def objects(self, count: int) -> Objects:
        offset = _HEADER
        for _ in range(count):
            self._afford(_declared_size(self.data, offset))
            unpacked, end = unpack_object_at(self.data, offset, sha1, zlib_bufsize=_WINDOW)  # type: ignore[arg-type]  # a bytearray slices alike
            self._take(unpacked, offset)
            offset = end
        if offset != len(self.data) - _TRAILER:
            raise PackBroken("bytes follow its last object")
        if self.waiting:
            raise PackBroken("a delta's base is missing")
        return self.found

    def _take(self, unpacked: UnpackedObject, offset: int) -> None:
        content, kind = b"".join(unpacked.decomp_chunks), unpacked.pack_type_num
        if kind not in (OFS_DELTA, REF_DELTA):
            return self._keep(offset, kind, content)
        self._afford(_result_size(content))
        key = _base_of(unpacked, offset)
        base = self.found.get(self.at.get(key, "") if isinstance(key, int) else key)
        if base is None:
            self.waiting.setdefault(key, []).append((offset, content))
            return None
        return self._keep(offset, base[0], _applied(base[1], content))

    def _keep(self, offset: int, kind: int, content: bytes) -> None:
        """Keep an object and the deltas that waited for it."""
        ready = [(offset, kind, content)]
        while ready:
            offset, kind, content = ready.pop()
            oid = obj_sha(kind, content).hex()
            self.at[offset] = oid
            self.found[oid] = (kind, content)
            waited = [*self.waiting.pop(offset, ()), *self.waiting.pop(oid, ())] if self.waiting else ()
            ready.extend((place, kind, _applied(content, delta)) for place, delta in waited)

    def _afford(self, size: int) -> None:
        self.left -= size
        if size > self.limits.object:
            raise _over(self.subject, f"an object of {size} bytes, more than {self.limits.object}")
        if self.left < 0:
            raise _over(self.subject, f"more than {self.limits.inflated} bytes of content")


def _base_of(unpacked: UnpackedObject, offset: int) -> int | str:
    base = unpacked.delta_base
    if isinstance(base, int):
        return offset - base
    if base is None:
        raise PackBroken("a delta names no base")
    return base.hex()


def _applied(base: bytes, delta: bytes) -> bytes:
    return b"".join(apply_delta(base, delta))


def _over(subject: str, message: str) -> SourceRefused:
    return SourceRefused.of(subject, f"the commit declares {message}", fix="keep large files out of git, or deploy a directory of it")


def _declared_size(data: bytes | bytearray, offset: int) -> int:
    """Return the size an object's header claims; numbers without end are refused before dulwich adds them up."""
    first, size, end = data[offset], data[offset] & 15, offset + 1
    if first & 0x80:
        more, end = _number(data, end)
        size |= more << 4
    if (first >> 4) & 7 == OFS_DELTA:
        _number(data, end)
    return size


def _result_size(delta: bytes) -> int:
    """Return the size a delta claims for its result (git: Documentation/gitformat-pack, "Deltified representation")."""
    _, end = _number(delta, 0)
    return _number(delta, end)[0]


def _number(data: bytes | bytearray, offset: int) -> tuple[int, int]:
    """Read a number of seven bits a byte, lowest first; return it and its end."""
    value = 0
    for place in range(_LONGEST_NUMBER):
        byte = data[offset + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, offset + place + 1
    raise PackBroken("a number without end")
