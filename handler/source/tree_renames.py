"""What git might take for renamed when two trees are merged, where it would ask a person: `merged_tree` itself goes by paths alone.

    a file that both sides removed      one may have renamed it: to what the other hasn't, or where the other only dropped it
    a directory that one side hasn't    it may be renamed, and what the other has added in it might belong elsewhere

Git compares contents, which aren't here. Law: what has the same id is renamed; what is new may be whatever that side has removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from handler.model.errors import SourceRefused
from handler.model.tree import DIRECTORY, EXECUTABLE, FILE, TreeEntry, printable
from handler.source.host_limits import HostLimits

_EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""The empty file, which git never takes for renamed."""
_Kind = tuple[int, str]
"""What git compares before it looks into files: whether it is a file or a link, and the id."""


class Directories(Protocol):
    """A tree that says what lies directly in a directory."""

    def children(self, path: str) -> Mapping[str, TreeEntry]:
        """Return the entries of a directory by name; nothing where none is. Raises SourceRefused."""


@dataclass
class _Changes:
    """What one side has removed and added, files only, and `gone`: the directories that it has no more."""

    removed: dict[str, _Kind] = field(default_factory=dict)
    added: dict[str, _Kind] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._removed: Counter[_Kind] = Counter()
        self._added: dict[_Kind, list[str]] = {}
        self._is_free = False

    def close(self) -> None:
        """Count what is the same, once all is there."""
        self._removed = Counter(self.removed.values())
        for path, kind in self.added.items():
            if kind[1] != _EMPTY:
                self._added.setdefault(kind, []).append(path)
        # what has the same id as something that was removed is that to git, and nothing else
        self._is_free = any(kind[0] == FILE and len(paths) > self._removed[kind] for kind, paths in self._added.items())

    def may_be_renamed(self, path: str) -> bool:
        """Whether what was removed there may be something that was added."""
        kind = self.removed[path]
        return kind in self._added or (self._is_free and kind[0] == FILE and kind[1] != _EMPTY)

    def certainly(self, path: str) -> str:
        """Return to what a file was renamed; empty: that isn't certain."""
        kind = self.removed[path]
        paths = self._added.get(kind, [])
        return paths[0] if len(paths) == self._removed[kind] == 1 else ""

    def moved(self) -> set[str]:
        """Return the directories that may have been renamed."""
        paths = (path for path in self.removed if self.may_be_renamed(path))
        return {above for path in paths for above in _above(path) if above in self.gone}


def uncertain(base: Directories, head: Directories, ancestor: Directories, limits: HostLimits) -> list[str]:
    """Return the paths of which git might say that a side has renamed them, in a way that no merge can follow. Raises SourceRefused."""
    one, other = (_Reading(side, ancestor, limits).changes() for side in (base, head))
    found = {path for mine, yours in ((one, other), (other, one)) for path in _below(mine.moved(), yours.added)}
    if (one.removed, one.added) != (other.removed, other.added):  # where both are the same, so is what git sees in them
        twice = (path for path in one.removed if path in other.removed)
        found |= {path for path in twice if _is_torn(path, one, other)}
    return sorted(found)


def _is_torn(path: str, one: _Changes, other: _Changes) -> bool:
    if not (one.may_be_renamed(path) or other.may_be_renamed(path)):
        return False
    return not one.certainly(path) or one.certainly(path) != other.certainly(path)


def _below(directories: set[str], paths: Iterable[str]) -> Iterator[str]:
    return (path for path in paths if directories and any(above in directories for above in _above(path)))


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


class _Reading:
    """Reads what a side has changed."""

    def __init__(self, side: Directories, ancestor: Directories, limits: HostLimits) -> None:
        self._side, self._ancestor, self._limits = side, ancestor, limits
        self._found = _Changes()
        self._waiting = [""]

    def changes(self) -> _Changes:
        """Return all of them. Raises SourceRefused."""
        seen = 0
        while self._waiting:
            path = self._waiting.pop()
            if path.count("/") >= self._limits.depth:
                raise SourceRefused.of(printable(path), f"is deeper than {self._limits.depth} directories")
            now, was = self._side.children(path), self._ancestor.children(path)
            seen += len(now) + len(was)
            if seen > 2 * self._limits.entries:
                raise SourceRefused.of(printable(path) or "the repository", f"has more than {self._limits.entries} files and directories")
            for name in dict.fromkeys([*now, *was]):
                self._read(f"{path}/{name}" if path else name, now.get(name), was.get(name))
        self._found.close()
        return self._found

    def _read(self, path: str, now: TreeEntry | None, was: TreeEntry | None) -> None:
        if now and was and (now.mode, now.oid) == (was.mode, was.oid):
            return
        kind, before = _kind(now), _kind(was)
        if before and not kind:
            self._found.removed[path] = before
        elif kind and not before:
            self._found.added[path] = kind
        is_directory, was_directory = (entry is not None and entry.mode == DIRECTORY for entry in (now, was))
        if was_directory and not is_directory:
            self._found.gone.add(path)
        if was_directory or is_directory:
            self._waiting.append(path)


def _kind(entry: TreeEntry | None) -> _Kind | None:
    if entry is None or entry.mode == DIRECTORY:
        return None
    return (FILE if entry.mode == EXECUTABLE else entry.mode), entry.oid
