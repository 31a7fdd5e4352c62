"""A fetched commit for a renderer: paths, ids and blobs. No work tree, no disk."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from handler.model.errors import AnnealError, SourceRefused
from handler.model.quotation import printable as printable  # noqa: PLC0414 - the rooms that read trees take it from here

DIRECTORY = 0o040000
FILE = 0o100644
EXECUTABLE = 0o100755
LINK = 0o120000
SUBMODULE = 0o160000
MAX_LINKS = 40  # links followed for one path, as Linux counts them (path_resolution(7))
MAX_STEPS = 4096  # names of one path with those of the links that it leads through
MAX_PATH = 4096  # bytes of a path or of a link's text
LFS_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True, slots=True)
class TreeEntry:
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


NO_COMMIT = CommitInfo("", "", "", 0)  # of files that no commit holds


class Tree(Protocol):
    """The port between `source` and `render`. Paths have no leading slash; the root is the empty path."""

    commit: CommitInfo

    def lookup(self, path: str) -> TreeEntry | None:
        """Return the entry at a path without following symlinks, or None."""

    def walk(self, path: str) -> Iterable[TreeEntry]:
        """Yield every file and link below a directory, sorted by path; trees themselves are not yielded."""

    def blobs(self, oids: Iterable[str], ahead: Iterable[str] = ()) -> Mapping[str, bytes]:
        """Return the contents of these blobs, fetching at once what isn't here yet. `ahead`: what is fetched with them for later."""


OUTSIDE = "//"
"""How the name of a read begins that isn't git's: no path of a tree does."""
Outside = Callable[[str], str]
"""The name of such a read -> what it is now: a version, a digest, empty where there is nothing. Raises AnnealError: it can't be asked."""


def nothing_outside(name: str) -> str:  # noqa: ARG001 - the port's signature
    """Know nothing but git: what was read elsewhere is always another."""
    return ""


@dataclass(frozen=True, slots=True)
class ReadSet:
    """Every path a render read and every look-up that failed (`oid` empty), so that a new tree can be compared.

    Beside paths it holds what came from elsewhere than git, by names that begin with `OUTSIDE`: all inputs are one digest.
    """

    paths: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, reads: Mapping[str, str]) -> ReadSet:
        """Make one from path -> hex id (empty: looked up, not there)."""
        return cls(tuple(sorted(reads.items())))

    def digest(self) -> str:
        """Return the sha256 that the state records."""
        lines = "".join(f"{oid or '-'} {path}\n" for path, oid in self.paths)
        return hashlib.sha256(lines.encode()).hexdigest()

    def on(self, tree: Tree, outside: Outside = nothing_outside) -> ReadSet:
        """Look the same paths up in another tree, and what isn't git's where it comes from now."""
        found = ((path, outside(path) if path.startswith(OUTSIDE) else _oid(tree, path)) for path, _ in self.paths)
        return ReadSet(tuple(found))

    @property
    def elsewhere(self) -> ReadSet:
        """What was read elsewhere than in git."""
        return ReadSet(tuple((path, seen) for path, seen in self.paths if path.startswith(OUTSIDE)))

    def holds(self, outside: Outside) -> bool:
        """Whether what was read elsewhere than in git is what it was."""
        return all(outside(path) == seen for path, seen in self.elsewhere.paths)


def _oid(tree: Tree, path: str) -> str:
    entry = tree.lookup(path)
    return entry.oid if entry else ""


@contextlib.contextmanager
def judged_from(reads: ReadSet) -> Iterator[None]:
    """Let an error say from which read set it follows: a tree where that is the same makes the same mistake."""
    try:
        yield
    except AnnealError as error:
        error.basis = replace(error.basis, reads=error.basis.reads or reads.paths)
        raise


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where a path leads. `entry`: never a link; None: nothing there. `looked`: path -> id of all that decided it (empty: absent)."""

    entry: TreeEntry | None
    looked: tuple[tuple[str, str], ...]


def resolve_links(tree: Tree, path: str) -> Resolved:
    """Follow symbolic links inside the repository, as a kernel would (path_resolution(7)); `looked` belongs into the read set.

    Raises SourceRefused, naming the link only: it is absolute, leads out of the repository or in a circle, or the path is a submodule.
    """
    direct = tree.lookup(path)
    if direct and direct.mode not in (LINK, SUBMODULE):
        return Resolved(direct, ((path, direct.oid),))
    return _Steps(tree, path).run()


class _Steps:
    def __init__(self, tree: Tree, path: str) -> None:
        self.tree = tree
        self.path = path
        self.link = path
        self.todo = path.split("/")[::-1]
        self.here: list[str] = []
        self.looked: dict[str, str] = {}
        self.links = 0
        self.steps = 0

    def run(self) -> Resolved:
        while self.todo:
            part = self.todo.pop()
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise SourceRefused.of(printable(self.path), f"leads through symbolic links over more than {MAX_STEPS:,} names")
            if part == "..":
                self._up()
            elif part not in ("", ".") and not self._down(part):
                return Resolved(None, tuple(self.looked.items()))
        entry = self.tree.lookup("/".join(self.here))
        if entry:
            self.looked[entry.path] = entry.oid
        return Resolved(entry, tuple(self.looked.items()))

    def _up(self) -> None:
        if not self.here:
            raise SourceRefused.of(printable(self.link), "this symbolic link leads out of the repository")
        self.here.pop()

    def _down(self, part: str) -> bool:
        entry = self.tree.lookup("/".join((*self.here, part)))
        if entry is None:
            self.looked["/".join((*self.here, part))] = ""
            return False
        if entry.mode == SUBMODULE:
            raise SourceRefused.of(
                printable(entry.path), "this is a submodule; submodules are not fetched", fix="copy its files into the repository"
            )
        if entry.mode == LINK:
            self._follow(entry)
            return True
        self.here.append(part)
        if self.todo and entry.mode != DIRECTORY:
            self.looked[entry.path] = entry.oid
            return False
        return True

    def _follow(self, entry: TreeEntry) -> None:
        self.link = entry.path
        self.looked[entry.path] = entry.oid
        self.links += 1
        if self.links > MAX_LINKS:
            raise SourceRefused.of(
                printable(self.path), f"more than {MAX_LINKS} symbolic links, or links in a circle, at {printable(entry.path)}"
            )
        self.todo.extend(link_text(entry, self.tree.blobs([entry.oid])[entry.oid]).split("/")[::-1])


def link_text(entry: TreeEntry, blob: bytes) -> str:
    """Return where a symbolic link points. Raises SourceRefused, without its text: it is absolute, empty, too long or not text."""
    if not blob or len(blob) > MAX_PATH or b"\0" in blob:
        raise SourceRefused.of(printable(entry.path), "this symbolic link has no usable target")
    if blob.startswith(b"/"):
        raise SourceRefused.of(printable(entry.path), "this symbolic link is absolute; only links inside the repository are followed")
    try:
        return blob.decode()
    except UnicodeDecodeError:
        raise SourceRefused.of(printable(entry.path), "the target of this symbolic link is not UTF-8") from None


def is_lfs_pointer(blob: bytes) -> bool:
    """Say whether a blob only points to content in Git LFS (git-lfs docs/spec.md)."""
    return blob.startswith(LFS_POINTER)
