"""A commit whose encrypted files are plain: what renderers are given in its place. Paths, modes and ids are git's.

Law: an id names what git has, so that read sets, caches and records hold nothing of what was encrypted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from handler.model.errors import AnnealError, SourceRefused
from handler.model.tree import DIRECTORY, Tree, TreeEntry, printable
from handler.render.sandbox import Sandbox
from handler.render.sops.decryptor import Blob, Candidate, Decryptor, PlainFile
from handler.render.sops.encrypted_file import may_be_encrypted


class DecryptedTree:
    """`handler.model.tree.Tree`. `used`: the encrypted files that were read so far; `refused`: why one couldn't be."""

    def __init__(self, tree: Tree, decryptor: Decryptor, sandbox: Sandbox, *, weak: bool) -> None:
        """`weak`: sops may run without walls for files and sockets."""
        self.commit = tree.commit
        self.used: dict[Blob, PlainFile] = {}
        self.refused: AnnealError | None = None
        self._tree = tree
        self._decryptor = decryptor
        self._sandbox = sandbox
        self._weak = weak
        self._paths: dict[str, set[str]] = {}
        self._known: dict[str, PlainFile | None] = {}

    @property
    def stands_in(self) -> bool:
        """Whether placeholders stand for what is encrypted."""
        return self._decryptor.keys is None

    def lookup(self, path: str) -> TreeEntry | None:
        """Return the entry at a path."""
        entry = self._tree.lookup(path)
        if entry:
            self._note(entry)
        return entry

    def walk(self, path: str) -> Iterator[TreeEntry]:
        """Yield every file and link below a directory."""
        for entry in self._tree.walk(path):
            self._note(entry)
            yield entry

    def blobs(self, oids: Iterable[str], ahead: Iterable[str] = ()) -> Mapping[str, bytes]:
        """Return contents, encrypted ones decrypted. Raises as `Decryptor.decrypt`; SourceRefused: its names disagree."""
        found = dict(self._tree.blobs(oids, ahead))
        new = {oid: data for oid, data in found.items() if oid not in self._known}
        candidates = {self._blob(oid): Candidate(min(self._paths.get(oid, {oid})), new[oid]) for oid in new if may_be_encrypted(new[oid])}
        try:
            plain = self._decryptor.decrypt(candidates, self._sandbox, weak=self._weak) if candidates else {}
        except AnnealError as error:
            self.refused = error
            raise
        self.used |= plain
        self._known |= {**dict.fromkeys(new), **{blob[0]: file for blob, file in plain.items()}}
        return {oid: file.data if (file := self._known[oid]) else data for oid, data in found.items()}

    def _note(self, entry: TreeEntry) -> None:
        if entry.mode != DIRECTORY:
            self._paths.setdefault(entry.oid, set()).add(entry.path)

    def _blob(self, oid: str) -> Blob:
        """Return what a file is known by. What JSON holds depends on its name: all names of one blob must say the same."""
        names = {_kind(path): path for path in sorted(self._paths.get(oid, {""}))}
        if len(names) > 1:
            seen = f"is the same encrypted file as {printable(min(names.values()))}, and their names make it two formats of sops"
            raise SourceRefused.of(printable(max(names.values())), seen, fix="encrypt each of them")
        return oid, next(iter(names))


def _kind(path: str) -> str:
    return "yaml" if path.endswith((".yaml", ".yml")) else "json" if path.endswith(".json") else ""
