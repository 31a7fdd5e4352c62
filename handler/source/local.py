"""A directory on disk as a Tree, for the command line without a configuration.

Its files become git objects in memory with the ids git would give them, so everything behind the port works as with a fetched commit, and
the same checks hold. Whether the directory is what the last commit says is one comparison of tree ids.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dulwich.errors import FileFormatException, NotGitRepository, NotTreeError
from dulwich.object_store import tree_lookup_path
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree
from dulwich.repo import Repo

from handler.model.errors import SourceRefused
from handler.model.tree import DIRECTORY, EXECUTABLE, FILE, LINK, CommitInfo, printable
from handler.source.commit import info_of
from handler.source.limits import Limits
from handler.source.pack import BLOB, TREE, Objects
from handler.source.tree import FetchedTree

NO_COMMIT = CommitInfo("", "", "", 0)


def open_local(directory: Path, limits: Limits = Limits()) -> tuple[FetchedTree, bool]:  # noqa: B008 - frozen
    """Read a directory and the commit it lies in.

    Returns: its tree (paths relative to the directory; `.git` is left out), and whether it differs from the commit. Outside a
    repository the commit's fields are empty, and nothing differs.

    Raises:
        SourceRefused: a file can't be read, isn't a file or link, or is over a limit; a name breaks a rule.
    """
    if not directory.is_dir():
        raise SourceRefused.of(printable(str(directory)), "is not a directory")
    reading = _Reading(limits)
    root = reading.directory(directory, 0)
    commit, recorded = _commit_of(directory.resolve())
    tree = FetchedTree(commit, root, reading.objects, limits)
    tree.check("")
    return tree, bool(commit.sha) and root != recorded


def open_beside(directory: Path, file: Path, limits: Limits = Limits()) -> tuple[FetchedTree, str, str]:  # noqa: B008 - frozen
    """Read a directory and one file that lies elsewhere as the only two entries of a tree, which no commit holds.

    Returns: the tree, the directory's path in it, the file's.

    Raises:
        SourceRefused: as `open_local`.
    """
    if not directory.is_dir():
        raise SourceRefused.of(printable(str(directory)), "is not a directory")
    reading = _Reading(limits)
    inside, outside = directory.resolve().name or "directory", file.name
    if inside == outside:
        outside = f"beside-{outside}"
    tree = Tree()
    try:
        mode, content = reading.file(str(file.resolve()))
    except OSError as error:
        raise SourceRefused.of(printable(str(file)), f"can't be read: {error.strerror}") from None
    tree.add(os.fsencode(inside), DIRECTORY, ObjectID(reading.directory(directory, 0).encode()))
    tree.add(os.fsencode(outside), mode, reading.blob(content))
    made = FetchedTree(NO_COMMIT, reading.keep(tree, TREE), reading.objects, limits)
    made.check("")
    return made, inside, outside


class _Reading:
    """Collects the objects of a directory, counting entries and bytes."""

    def __init__(self, limits: Limits) -> None:
        self.objects: Objects = {}
        self._limits = limits
        self._entries = 0
        self._bytes = 0

    def directory(self, place: Path, depth: int) -> str:
        """Read a directory; return its tree's id. Empty directories are left out, as git does."""
        tree = Tree()
        if depth > self._limits.depth:
            raise SourceRefused.of(printable(str(place)), f"is deeper than {self._limits.depth} directories")
        try:
            with os.scandir(place) as found:
                entries = sorted(found, key=lambda entry: entry.name)
            for entry in entries:
                self._add(tree, entry, depth)
        except OSError as error:
            raise SourceRefused.of(printable(str(place)), f"can't be read: {error.strerror}") from None
        return self.keep(tree, TREE)

    def _add(self, tree: Tree, entry: os.DirEntry[str], depth: int) -> None:
        """Put one name of a directory into its tree."""
        self._entries += 1
        if self._entries > self._limits.entries:
            raise SourceRefused.of(printable(entry.path), f"there are more than {self._limits.entries} files and directories")
        if entry.name == ".git":
            return
        if entry.is_symlink():
            tree.add(os.fsencode(entry.name), LINK, self.blob(os.fsencode(os.readlink(entry.path))))  # noqa: PTH115 - DirEntry
        elif entry.is_dir():
            oid = self.directory(Path(entry.path), depth + 1)
            if self.objects[oid][1]:
                tree.add(os.fsencode(entry.name), DIRECTORY, ObjectID(oid.encode()))
        else:
            mode, content = self.file(entry.path)
            tree.add(os.fsencode(entry.name), mode, self.blob(content))

    def file(self, path: str) -> tuple[int, bytes]:
        """Read a regular file, and nothing that was put in its place meanwhile."""
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode):
                raise SourceRefused.of(printable(path), "is neither a file, a directory nor a link")
            content = file.read(self._limits.object + 1)
        if len(content) > self._limits.object:
            raise SourceRefused.of(printable(path), f"is larger than {self._limits.object} bytes")
        return EXECUTABLE if state.st_mode & stat.S_IXUSR else FILE, content

    def blob(self, content: bytes) -> ObjectID:
        """Keep a file's content; return its id."""
        self._bytes += len(content)
        if self._bytes > self._limits.inflated:
            raise SourceRefused.of("directory", f"holds more than {self._limits.inflated} bytes")
        return ObjectID(self.keep(Blob.from_string(content), BLOB).encode())

    def keep(self, made: ShaFile, kind: int) -> str:
        """Keep an object; return its id."""
        oid = made.id.decode()
        self.objects[oid] = (kind, made.as_raw_string())
        return oid


def _commit_of(directory: Path) -> tuple[CommitInfo, str]:
    """Return the last commit of the repository around a directory, and the id of the tree it records for that directory."""
    try:
        with Repo.discover(str(directory)) as repo:
            commit = repo[repo.head()]
            if not isinstance(commit, Commit):
                return NO_COMMIT, ""
            inside = directory.relative_to(Path(repo.path).resolve()).as_posix()
            return info_of(commit.id.decode(), commit), _recorded(repo, commit, inside)
    except (NotGitRepository, FileFormatException, KeyError, ValueError, OSError):
        return NO_COMMIT, ""


def _recorded(repo: Repo, commit: Commit, inside: str) -> str:
    """Return the id of the tree a commit has at a directory, or nothing."""
    oid: ObjectID = commit.tree
    try:
        if inside != ".":
            _, oid = tree_lookup_path(repo.object_store.__getitem__, oid, os.fsencode(inside))
        return oid.decode()
    except (KeyError, NotTreeError):
        return ""
