"""A fetched commit, as far as a renderer may see it: paths, ids and blobs. No work tree, no disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a tree. `mode` as git writes it (0o100644, 0o120000, 0o040000), `oid` the hex id."""

    path: str
    mode: int
    oid: str


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What history shows of a commit. `time`: seconds since the epoch."""

    sha: str
    subject: str
    author: str
    time: int


class Tree(Protocol):
    """The port between `source` and `render`. Paths have no leading slash; the root is the empty path."""

    commit: CommitInfo

    def lookup(self, path: str) -> Entry | None:
        """Return the entry at a path without following symlinks, or None."""

    def walk(self, path: str) -> Iterable[Entry]:
        """Yield every file and link below a directory, sorted by path; trees themselves are not yielded."""

    def blobs(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        """Return the contents of these blobs, fetching at once what isn't here yet."""


@dataclass(frozen=True, slots=True)
class ReadSet:
    """Every path a render read and every look-up that failed (`oid` empty), so that a new tree can be compared."""

    paths: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, reads: Mapping[str, str]) -> ReadSet:
        """Make one from path -> hex id (empty: looked up, not there)."""
        return cls(tuple(sorted(reads.items())))

    def digest(self) -> str:
        """Return the sha256 that the state records."""
        lines = "".join(f"{oid or '-'} {path}\n" for path, oid in self.paths)
        return hashlib.sha256(lines.encode()).hexdigest()

    def on(self, tree: Tree) -> ReadSet:
        """Look the same paths up in another tree."""
        entries = ((path, tree.lookup(path)) for path, _ in self.paths)
        return ReadSet(tuple((path, entry.oid if entry else "") for path, entry in entries))
