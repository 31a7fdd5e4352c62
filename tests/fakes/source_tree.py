"""The `Tree` port in memory: paths and contents in, git's own ids out. What a renderer sees of it is what it sees of a fetched commit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from handler.model.tree import DIRECTORY, FILE, LINK, SUBMODULE, CommitInfo, TreeEntry


class FakeTree:
    """A commit made of `files` (path -> content), `links` (path -> text) and `submodules`. `fetched`: how often blobs were asked for."""

    def __init__(self, files: Mapping[str, str | bytes], links: Mapping[str, str] | None = None, submodules: Iterable[str] = ()) -> None:
        self.commit = CommitInfo("c0ffee" * 6 + "c0ff", "A change", "An Author", 0)
        self.fetched = 0
        self._blobs: dict[str, bytes] = {}
        self._entries = {"": TreeEntry("", DIRECTORY, "")}
        for path, content in files.items():
            self._put(path, FILE, content.encode() if isinstance(content, str) else content)
        for path, text in (links or {}).items():
            self._put(path, LINK, text.encode())
        for path in submodules:
            self._entries[path] = TreeEntry(path, SUBMODULE, "5" * 40)
        self._add_directories()

    def lookup(self, path: str) -> TreeEntry | None:
        return self._entries.get(path)

    def walk(self, path: str) -> Iterator[TreeEntry]:
        prefix = f"{path}/" if path else ""
        return iter(sorted((e for e in self._entries.values() if e.mode != DIRECTORY and e.path.startswith(prefix)), key=lambda e: e.path))

    def blobs(self, oids: Iterable[str], ahead: Iterable[str] = ()) -> Mapping[str, bytes]:
        self.fetched += 1
        return {oid: self._blobs[oid] for oid in oids}

    def _put(self, path: str, mode: int, content: bytes) -> None:
        oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        self._blobs[oid] = content
        self._entries[path] = TreeEntry(path, mode, oid)

    def _add_directories(self) -> None:
        names = {"", *("/".join(path.split("/")[:count]) for path in self._entries for count in range(1, path.count("/") + 1))}
        for name in sorted(names, key=lambda name: (-name.count("/"), name == "")):
            below = sorted(f"{e.path} {e.oid}" for e in self._entries.values() if e.path and e.path.rpartition("/")[0] == name)
            self._entries[name] = TreeEntry(name, DIRECTORY, hashlib.sha1("\n".join(below).encode()).hexdigest())
