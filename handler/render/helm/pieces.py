"""Pieces of a program's output, each known by its digest: one that an earlier render made the same isn't read again.

    child     a piece begins (`new`), its objects follow; or it is one that is known, and nothing follows
    worker    the objects of each piece, in order

Law: a digest covers the piece's bytes and its place, so that the same text elsewhere is another piece. Cost follows the change, as with
files of git.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from handler.model.errors import Problem
from handler.model.manifest import Manifest, canonical
from handler.model.render import Files
from handler.render.frames import Row, decode_noted

_DIGITS = 64


@dataclass(frozen=True, slots=True)
class Piece:
    """Where a piece begins. `place`: path of its template; `digest`; `new`: its objects follow."""

    place: str
    digest: str
    new: bool

    @classmethod
    def of(cls, place: str, data: bytes, about: object, known: Iterable[str]) -> Piece:
        """Make one. `about`: what else decides how its objects are read; `known`: digests."""
        digest = hashlib.sha256(canonical([place, about]) + data).hexdigest()
        return cls(place, digest, digest not in known)

    def encode(self) -> bytes:
        """Write it as a frame."""
        return (b"C" if self.new else b"K") + self.digest.encode() + self.place.encode()


OutputRow = Row | str | Piece


def decode_output(frame: bytes) -> OutputRow:
    """Read a frame of a program's output. Raises ValueError: it is none."""
    if frame[:1] in (b"C", b"K"):
        text = frame[1:].decode()
        return Piece(text[_DIGITS:], text[:_DIGITS], frame[:1] == b"C")
    return decode_noted(frame)


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """What a program made. `files`: (place, digest) of a piece -> its objects; `problems`: every mistake."""

    files: Files
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """The objects, in order."""
        return tuple(manifest for each in self.files.values() for manifest in each)


def assembled(rows: Iterable[OutputRow], known: Files) -> ProgramOutput:
    """Put the objects of new and of known pieces together. Raises KeyError: none is known so."""
    files: dict[tuple[str, str], tuple[Manifest, ...]] = {}
    notes: list[str] = []
    problems: list[Problem] = []
    at = ("", "")
    for row in rows:
        if isinstance(row, Problem):
            problems.append(row)
        elif isinstance(row, str):
            notes.append(row)
        elif isinstance(row, Piece):
            at = row.place, row.digest
            problems += [Problem(str(each.identity), f"declared twice, first at {each.place}", each.place) for each in files.get(at, ())]
            files[at] = () if row.new else known[at]
        else:
            files[at] = (*files.get(at, ()), row)
    return ProgramOutput(files, tuple(notes), tuple(problems))


def digests(known: Mapping[tuple[str, str], object]) -> list[str]:
    """Return the digests of pieces among what is known."""
    return [digest for _, digest in known if len(digest) == _DIGITS]
