"""FetchedTree: a commit's trees and blobs by path. Law: no name leaves it that wasn't checked (`tree_names`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from handler.model.errors import GitUnavailable, SourceRefused
from handler.model.tree import DIRECTORY, SUBMODULE, CommitInfo, TreeEntry, printable, resolve_links
from handler.source.git_objects import BLOB, TREE, Accept, Objects, read_tree
from handler.source.host_limits import HostLimits
from handler.source.tree_names import Children, has_more

_ENTRY = 300  # bytes that a name, its mode and its id take in memory; measured with 200,000 names of 20 letters
FetchBlobs = Callable[[Collection[str]], Objects]
Read = Callable[[bytes, str], Children]
"""Reads and checks a tree object, which was reached at a path; raises SourceRefused."""


def nothing_more(_: Collection[str]) -> Objects:
    """Fetch no blobs: all there are were given."""
    return {}


class FetchedTree:
    """One commit in memory (`handler.model.tree.Tree`). Safe to share between threads; blobs that are missing come at the first need."""

    def __init__(
        self,
        commit: CommitInfo,
        root: str,
        objects: Objects,
        limits: HostLimits,
        fetch: FetchBlobs = nothing_more,
        read: Read = read_tree,
    ) -> None:
        self.commit = commit
        self._root = root
        self._objects = objects
        self._limits = limits
        self._fetch = fetch
        self._read = read
        self._children: dict[str, Children] = {}
        self._inflated = sum(len(content) for _, content in objects.values())
        self._listed = 0
        self._fetching = threading.Lock()
        self._listing = threading.Lock()

    @property
    def size(self) -> int:
        """The bytes it holds: contents, and the names that were listed so far."""
        return self._inflated + self._listed * _ENTRY

    def judge(self, accept: Accept) -> None:
        """Hand the raw commit to `accept`. Raises CommitUnverified."""
        accept(self.commit.sha, self._objects.get(self.commit.sha, (0, b""))[1], self._root)

    def lookup(self, path: str) -> TreeEntry | None:
        """Return the entry at a path, symlinks not followed, or None; empty: the root. Raises SourceRefused: a rule or limit is broken."""
        mode, oid, here, seen = DIRECTORY, self._root, "", 0
        for part in path.split("/") if path else ():
            children = self._list(oid, here) if mode == DIRECTORY else {}
            seen += len(children)
            if seen > self._limits.entries:
                raise self._too_many(here)
            child = children.get(part)
            if child is None:
                return None
            mode, oid = child
            here = f"{here}/{part}" if here else part
        return TreeEntry(path, mode, oid)

    def children(self, path: str) -> Mapping[str, TreeEntry]:
        """Return what lies directly in a directory, by name, in git's order; nothing where none is. Raises SourceRefused."""
        entry = self.lookup(path)
        if entry is None or entry.mode != DIRECTORY:
            return {}
        prefix = f"{path}/" if path else ""
        return {name: TreeEntry(prefix + name, mode, oid) for name, (mode, oid) in self._list(entry.oid, path).items()}

    def walk(self, path: str) -> Iterator[TreeEntry]:
        """Yield every file and link below a directory, sorted by path. Raises SourceRefused: a rule or limit is broken; a submodule."""
        top = self.lookup(path)
        waiting = [top] if top and top.mode == DIRECTORY else []
        seen = 0
        while waiting:
            entry = waiting.pop()
            if entry.mode != DIRECTORY:
                yield entry
                continue
            below = self._entries(entry)
            seen += len(below)
            if seen > self._limits.entries:
                raise self._too_many(path)
            waiting.extend(reversed(below))

    def check(self, path: str) -> None:
        """Check every tree on the way to `path`, through links, and below it. Raises SourceRefused: as `walk`."""
        found = resolve_links(self, path).entry
        if found:
            for _ in self.walk(found.path):
                pass

    def blobs(self, oids: Iterable[str], ahead: Iterable[str] = ()) -> Mapping[str, bytes]:
        """Return contents, fetching what isn't here. Raises GitUnavailable: the host lacks them; SourceRefused: no blob, or too large."""
        wanted = list(dict.fromkeys(oids))
        self._fetch_missing([*wanted, *ahead])
        return {oid: self._content(oid, BLOB, f"blob {oid}") for oid in wanted}

    def _fetch_missing(self, wanted: Iterable[str]) -> None:
        if not self._fetching.acquire(timeout=self._limits.total):
            seen = f"the host is busy with other files of it, for more than {self._limits.total:g} s"
            raise GitUnavailable.of(f"commit {self.commit.sha}", seen)
        try:
            missing = dict.fromkeys(oid for oid in wanted if oid not in self._objects)
            fetched = self._fetch(missing) if missing else {}
            new = {oid: found for oid, found in fetched.items() if oid in missing}  # what wasn't asked for isn't kept
            inflated = self._inflated + sum(len(content) for _, content in new.values())
            if inflated > self._limits.inflated:
                raise SourceRefused.of(f"commit {self.commit.sha}", f"holds more than {self._limits.inflated} bytes of content")
            self._inflated = inflated  # not before: what is refused isn't kept, and must leave room for others' files
            self._objects.update(new)
        finally:
            self._fetching.release()

    def _entries(self, directory: TreeEntry) -> list[TreeEntry]:
        prefix = f"{directory.path}/" if directory.path else ""
        if prefix.count("/") > self._limits.depth or len(prefix.encode()) > self._limits.path:
            raise SourceRefused.of(
                printable(prefix), f"is deeper than {self._limits.depth} directories or longer than {self._limits.path} bytes"
            )
        entries = [TreeEntry(prefix + name, mode, oid) for name, (mode, oid) in self._list(directory.oid, directory.path).items()]
        for entry in entries:
            if entry.mode == SUBMODULE:
                raise SourceRefused.of(printable(entry.path), "this is a submodule; submodules are not fetched", fix="copy its files here")
        return entries

    def _list(self, oid: str, path: str) -> Children:
        """Return a tree's children, checked when it is first met; all are dropped beyond two walks' worth."""
        if oid in (known := self._children):
            return known[oid]
        with self._listing:  # many threads that want one large tree read it once
            if oid in self._children:
                return self._children[oid]
            content = self._content(oid, TREE, printable(path) or "root tree")
            if has_more(content, self._limits.entries):
                raise self._too_many(path)
            children = self._read(content, path)
            if self._listed > 2 * self._limits.entries:
                self._children, self._listed = {}, 0
            self._children[oid] = children
            self._listed += len(children)
            return children

    def _too_many(self, path: str) -> SourceRefused:
        return SourceRefused.of(printable(path) or "the repository", f"has more than {self._limits.entries} files and directories")

    def _content(self, oid: str, kind: int, subject: str) -> bytes:
        found = self._objects.get(oid)
        if found is None:
            raise GitUnavailable.of(subject, f"the git host left out object {oid} of commit {self.commit.sha}")
        if found[0] != kind:
            raise SourceRefused.of(subject, f"object {oid} has another type than its tree says")
        return found[1]
