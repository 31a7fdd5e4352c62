"""A directory on disk as a Tree with git's own ids, checked as a fetched commit is; for command lines."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha1
from pathlib import Path
from typing import TypeAlias

from handler.model.errors import SourceRefused
from handler.model.tree import DIRECTORY, EXECUTABLE, FILE, LINK, NO_COMMIT, CommitInfo, printable
from handler.source.fetched_tree import FetchedTree
from handler.source.git_objects import BLOB, TREE, Objects, info_of
from handler.source.host_limits import HostLimits
from handler.source.tree_names import Children, children_of

_Named = tuple[bytes, int, str]  # name, mode, id
_Nested: TypeAlias = "dict[str, tuple[int, str] | _Nested]"
"""A directory that is being put together: name -> mode and id, or a directory."""


def open_local(directory: Path, limits: HostLimits = HostLimits()) -> tuple[FetchedTree, bool]:  # noqa: B008 - frozen
    """Read a directory and the commit it lies in; return its tree without `.git`, and whether it differs from the commit.

    Outside a repository the commit's fields are empty. Raises SourceRefused: a file can't be read, is no file or link, or exceeds a
    limit; a name breaks a rule.
    """
    if not directory.is_dir():
        raise SourceRefused.of(printable(str(directory)), "is not a directory")
    reading = _Reading(limits)
    root = reading.directory(directory, 0)
    commit, recorded = _commit_of(directory.resolve())
    return reading.checked(root, commit), bool(commit.sha) and root != recorded


def open_unignored(directory: Path, limits: HostLimits = HostLimits()) -> tuple[FetchedTree, bool]:  # noqa: B008 - frozen
    """Read a repository's working directory, or any other, as `open_local`, without what git ignores and files beyond the limit of one.

    What is ignored may be of any size: dependencies, results of builds. What is needed of it all the same is missed by name.
    """
    reading = _Reading(limits, _ignored(directory, limits.object))
    root = reading.directory(directory, 0)
    commit, recorded = _commit_of(directory.resolve())
    return reading.checked(root, commit), bool(commit.sha) and root != recorded


def _ignored(root: Path, most: int) -> Callable[[os.DirEntry[str]], bool]:
    from dulwich.ignore import IgnoreFilterManager  # noqa: PLC0415 - not needed elsewhere
    from dulwich.repo import Repo  # noqa: PLC0415 - the same

    rules = IgnoreFilterManager.from_repo(Repo(str(root))) if (root / ".git").exists() else None

    def leaves_out(entry: os.DirEntry[str]) -> bool:
        is_directory = entry.is_dir(follow_symlinks=False)
        path = Path(entry.path).relative_to(root).as_posix() + ("/" if is_directory else "")
        state = entry.stat(follow_symlinks=False)
        is_file = is_directory or stat.S_ISREG(state.st_mode) or stat.S_ISLNK(state.st_mode)  # git passes sockets and pipes over
        is_large = not is_directory and state.st_size > most
        return not is_file or is_large or bool(rules and rules.is_ignored(path))

    return leaves_out


def open_beside(directory: Path, file: Path, limits: HostLimits = HostLimits()) -> tuple[FetchedTree, str, str]:  # noqa: B008 - frozen
    """Read a directory and one file from elsewhere as the only entries of a tree; return it and their paths. Raises SourceRefused."""
    if not directory.is_dir():
        raise SourceRefused.of(printable(str(directory)), "is not a directory")
    reading = _Reading(limits)
    inside, outside = directory.resolve().name or "directory", file.name
    if inside == outside:
        outside = f"beside-{outside}"
    try:
        mode, content = reading.file(str(file.resolve()))
    except OSError as error:
        raise SourceRefused.of(printable(str(file)), f"can't be read: {error.strerror}") from None
    both = [(os.fsencode(inside), DIRECTORY, reading.directory(directory, 0)), (os.fsencode(outside), mode, reading.blob(content))]
    return reading.checked(reading.tree(both)), inside, outside


def open_files(found: Mapping[str, Path | bytes], limits: HostLimits = HostLimits()) -> FetchedTree:  # noqa: B008 - frozen
    """Read files, directories and bytes into one tree. `found`: path in the tree -> its place or content. Raises SourceRefused."""
    reading = _Reading(limits)
    root: _Nested = {}
    for path, given in found.items():
        try:
            _put(root, path, reading.taken(given))
        except OSError as error:
            raise SourceRefused.of(printable(path), f"can't be read: {error.strerror}") from None
    return reading.checked(reading.keep_nested(root))


def open_parts(root: Path, paths: Sequence[str], limits: HostLimits = HostLimits()) -> tuple[FetchedTree, bool]:  # noqa: B008 - frozen
    """Read these paths of a checkout's root and the commit that the first lies in; return their tree, and whether any differs from it.

    A path below another is a part of that. Raises SourceRefused: as `open_local`.
    """
    reading, commit, differs = _Reading(limits), _commit_of((root / paths[0]).resolve())[0], False
    nested: _Nested = {}
    for path in sorted(paths):
        try:
            entry = reading.taken(root / path)
        except OSError as error:
            raise SourceRefused.of(printable(path), f"can't be read: {error.strerror}") from None
        differs = differs or _commit_of((root / path).resolve()) != (commit, entry[1])
        if not path:
            return reading.checked(entry[1], commit), bool(commit.sha) and differs
        _put(nested, path, entry)
    return reading.checked(reading.keep_nested(nested), commit), bool(commit.sha) and differs


def _put(directory: _Nested, path: str, entry: tuple[int, str]) -> None:
    *above, name = path.split("/")
    for part in above:
        below = directory.setdefault(part, {})
        if isinstance(below, tuple):
            return
        directory = below
    directory[name] = entry


class _Reading:
    """Collects the objects of a directory, counting entries and bytes. `leaves_out`: entries that aren't read."""

    def __init__(self, limits: HostLimits, leaves_out: Callable[[os.DirEntry[str]], bool] = lambda _: False) -> None:
        self._leaves_out = leaves_out
        self.objects: Objects = {}
        self._listed: dict[bytes, list[_Named]] = {}
        self._limits = limits
        self._entries = 0
        self._bytes = 0

    def directory(self, place: Path, depth: int) -> str:
        """Read a directory, without empty ones, as git does; return its tree's id."""
        named: list[_Named] = []
        if depth > self._limits.depth:
            raise SourceRefused.of(printable(str(place)), f"is deeper than {self._limits.depth} directories")
        try:
            with os.scandir(place) as found:
                entries = sorted(found, key=lambda entry: entry.name)
            for entry in entries:
                named.extend(self._named(entry, depth))
        except OSError as error:
            raise SourceRefused.of(printable(str(place)), f"can't be read: {error.strerror}") from None
        return self.tree(named)

    def _named(self, entry: os.DirEntry[str], depth: int) -> Iterator[_Named]:
        self._entries += 1
        if self._entries > self._limits.entries:
            raise SourceRefused.of(printable(entry.path), f"there are more than {self._limits.entries} files and directories")
        if entry.name == ".git" or self._leaves_out(entry):
            return
        if entry.is_symlink():
            yield os.fsencode(entry.name), LINK, self.blob(os.fsencode(os.readlink(entry.path)))  # noqa: PTH115 - DirEntry
        elif entry.is_dir():
            oid = self.directory(Path(entry.path), depth + 1)
            if self.objects[oid][1]:
                yield os.fsencode(entry.name), DIRECTORY, oid
        else:
            mode, content = self.file(entry.path)
            yield os.fsencode(entry.name), mode, self.blob(content)

    def file(self, path: str) -> tuple[int, bytes]:
        """Read a regular file, no link or device that replaced it."""
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode):
                raise SourceRefused.of(printable(path), "is neither a file, a directory nor a link")
            content = file.read(self._limits.object + 1)
        if len(content) > self._limits.object:
            raise SourceRefused.of(printable(path), f"is larger than {self._limits.object} bytes")
        return EXECUTABLE if state.st_mode & stat.S_IXUSR else FILE, content

    def taken(self, given: Path | bytes) -> tuple[int, str]:
        """Read a file, a directory or bytes; return mode and id."""
        if isinstance(given, bytes):
            return FILE, self.blob(given)
        real = given.resolve()
        if real.is_dir():
            return DIRECTORY, self.directory(real, 0)
        mode, content = self.file(str(real))
        return mode, self.blob(content)

    def keep_nested(self, nested: _Nested) -> str:
        named: list[_Named] = []
        for name, entry in nested.items():
            mode, oid = entry if isinstance(entry, tuple) else (DIRECTORY, self.keep_nested(entry))
            named.append((os.fsencode(name), mode, oid))
        return self.tree(named)

    def blob(self, content: bytes) -> str:
        self._bytes += len(content)
        if self._bytes > self._limits.inflated:
            raise SourceRefused.of("directory", f"holds more than {self._limits.inflated} bytes")
        return self._keep(BLOB, b"blob", content)

    def tree(self, named: list[_Named]) -> str:
        """Keep a directory's entries in git's order: a directory's name counts as if a slash ended it."""
        ordered = sorted(named, key=lambda each: each[0] + b"/" if each[1] == DIRECTORY else each[0])
        content = b"".join(b"%o %s\0%s" % (mode, name, bytes.fromhex(oid)) for name, mode, oid in ordered)
        self._listed[content] = ordered
        return self._keep(TREE, b"tree", content)

    def _keep(self, kind: int, word: bytes, content: bytes) -> str:
        oid = sha1(b"%s %d\0%s" % (word, len(content), content), usedforsecurity=False).hexdigest()
        self.objects[oid] = (kind, content)
        return oid

    def checked(self, root: str, commit: CommitInfo = NO_COMMIT) -> FetchedTree:
        """Return the tree of this root. Raises SourceRefused: a check fails."""
        tree = FetchedTree(commit, root, self.objects, self._limits, read=self.children)
        tree.check("")
        return tree

    def children(self, content: bytes, path: str) -> Children:
        return children_of(self._listed[content], path)


def _commit_of(directory: Path) -> tuple[CommitInfo, str]:
    """Return the last commit of the repository around a directory, and the id of the directory's tree in it."""
    around = (directory, *directory.parents)
    if not any((each / ".git").exists() or (each / "objects").is_dir() for each in around):  # "objects": of a bare repository
        return NO_COMMIT, ""
    from dulwich.errors import FileFormatException, NotGitRepository, NotTreeError  # noqa: PLC0415 - not needed outside a repository
    from dulwich.object_store import tree_lookup_path  # noqa: PLC0415 - the same
    from dulwich.objects import Commit  # noqa: PLC0415 - the same
    from dulwich.repo import Repo  # noqa: PLC0415 - the same

    try:
        with Repo.discover(str(directory)) as repo:
            commit = repo[repo.head()]
            if not isinstance(commit, Commit):
                return NO_COMMIT, ""
            info, inside, oid = info_of(commit.id.decode(), commit), directory.relative_to(Path(repo.path).resolve()), commit.tree
            try:
                if inside.parts:
                    _, oid = tree_lookup_path(repo.object_store.__getitem__, oid, os.fsencode(inside.as_posix()))
            except (KeyError, NotTreeError):
                return info, ""
            return info, oid.decode()
    except (NotGitRepository, FileFormatException, KeyError, ValueError, OSError):
        return NO_COMMIT, ""
