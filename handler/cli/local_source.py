"""A directory, files or standard input as a source of commits (`apply -f`, `locutus`)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from handler.config.git_settings import Revision
from handler.model.errors import RefNotFound
from handler.model.refs import Head
from handler.model.tree import CommitInfo, Tree
from handler.source.fetched_tree import FetchedTree
from handler.source.local_tree import open_beside, open_files, open_local, open_parts, open_unignored

if TYPE_CHECKING:
    from handler.engine.planner.desired import CommitSource


class Fixed:
    """A source of one commit, whose tree is in memory already."""

    _tree: FetchedTree

    @property
    def commit(self) -> CommitInfo:
        """The commit; the tree's own id where there is none, so that the same content always has the same name."""
        return self._tree.commit

    def head(self, revision: Revision, since: float = math.inf) -> Head:  # noqa: ARG002 - the port's signature; there is one commit only
        """Return its id, whatever is followed."""
        return Head(self.commit.sha)

    def fetch(self, sha: str, path: str = "") -> Tree:  # noqa: ARG002 - the port's signature; all of it is read already
        """Return its tree. Raises RefNotFound for any other commit."""
        if sha != self.commit.sha:
            raise RefNotFound.of(f"commit {sha}", "isn't what the directory holds now")
        return self._tree

    def recheck(self, sha: str, path: str = "") -> None:
        """Do nothing: a directory carries no signature that could end."""


class Directory(Fixed):
    """A directory on disk, as the one commit it is at. `differs`: whether it holds changes that aren't committed; `shown`: as it was named.

    `path`, `rollout`: where in the commit's tree the directory and the given Rollout's file are found, which may lie outside of it.
    """

    def __init__(self, path: Path, rollout: Path | None = None) -> None:
        self.shown = "" if path == Path() else str(path)
        self.path, self.rollout, self.differs = "", _below(path, rollout) if rollout else "", False
        if rollout is None or self.rollout:
            self._tree, self.differs = open_local(path)
        else:
            self._tree, self.path, self.rollout = open_beside(path, rollout)
            self.shown = str(path.parent)
        self.committed = self._tree.commit
        if self.differs or not self.committed.sha:
            self._tree.commit = _unrecorded(self.committed, self._tree)


class Unignored(Fixed):
    """A repository's working directory, or any other, without what git ignores, as the one commit it is at."""

    def __init__(self, root: Path) -> None:
        self.shown = "."
        self._tree, differs = open_unignored(root)
        if differs or not self._tree.commit.sha:
            self._tree.commit = _unrecorded(self._tree.commit, self._tree)


class CheckoutParts(Fixed):
    """Directories and files of a checkout, by their paths from its root, as the one commit it is at. `path`: the one that is rendered."""

    def __init__(self, root: Path, path: str, parts: Collection[str]) -> None:
        near = os.path.relpath(root)
        self.shown, self.path = "" if near == "." else min(near, str(root), key=len), path
        self._tree, self.differs = open_parts(root, [path, *parts])
        self.committed = self._tree.commit
        if self.differs or not self.committed.sha:
            self._tree.commit = _unrecorded(self.committed, self._tree)


class Files(Fixed):
    """Files, directories and what came by a pipe, as one commit. `found`: path in its tree -> where it lies, or its content.

    `shown`: how commands name the directory that the paths start from; empty: the present one.
    """

    def __init__(self, found: Mapping[str, Path | bytes], shown: str = "") -> None:
        self.shown = shown
        self._tree = open_files(found)
        piped = all(isinstance(each, bytes) for each in found.values())
        self._tree.commit = _unrecorded(self._tree.commit, self._tree, "standard input" if piped else "files, as they lie there")


S = TypeVar("S", bound="CommitSource")


class Rereading(Generic[S]):
    """A source that is read anew at each look: its content then is its next commit."""

    def __init__(self, read: Callable[[], S]) -> None:
        self._read = read

    @cached_property
    def now(self) -> S:
        """The source as it was read last."""
        return self._read()

    def head(self, revision: Revision, since: float = math.inf) -> Head:
        """Read it, and return its id."""
        self.now = self._read()
        return self.now.head(revision, since)

    def fetch(self, sha: str, path: str = "") -> Tree:
        """Return its tree as it was read last. Raises RefNotFound for any other commit."""
        return self.now.fetch(sha, path)

    def recheck(self, sha: str, path: str = "") -> None:
        """Do nothing: a directory carries no signature that could end."""


def _below(directory: Path, file: Path) -> str:
    inside, root = file.resolve(), directory.resolve()
    return inside.relative_to(root).as_posix() if inside.is_relative_to(root) else ""


def _unrecorded(base: CommitInfo, tree: Tree, otherwise: str = "files of a directory, as they lie there") -> CommitInfo:
    root = tree.lookup("")
    assert root is not None  # noqa: S101 - every tree has a root
    subject = f"uncommitted changes on {base.sha[:12]}" if base.sha else otherwise
    return CommitInfo(root.oid, subject, "", 0)
