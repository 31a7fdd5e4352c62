"""Which files of a commit a Nix program is evaluated over: the target's directory, and what path literals lead to. In the worker.

    round 1      the target's directory with everything below it, and what the settings name
    round 2      what literals of those files name elsewhere: ../common, ../../hosts/prod.nix
    …            until nothing is new

Law: nix sees these files and nothing else of the commit, so that another commit with the same ones makes the same objects. A directory that
a file lies in isn't taken whole because the file names it; of it default.nix is. What an expression makes up (`./. + "/../x"`) can't be
seen: the settings list it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from handler.model.errors import RenderFailed, SourceRefused
from handler.model.tree import DIRECTORY, Tree, printable, resolve_links
from handler.render.folders import inside
from handler.render.nix.nix_paths import decode_literals, literals
from handler.render.sandbox import Sandbox
from handler.render.tree_files import TreeFiles

MAX_LITERALS = 50_000
"""Path literals of all files together: each is looked up in the worker."""
MAX_NAMED = 500_000
"""The same with those that lead to what is taken already."""
MAX_KNOWN = 50_000
"""Files of Nix whose literals a process remembers."""
SUFFIX = ".nix"
_DEFAULT = "default.nix"
_KNOWN: dict[
    str, list[str]
] = {}  # a blob's id -> its literals, which aren't read again; a wrong one only hides a file, and nix then says so


@dataclass(slots=True)
class NixClosure:
    """`files`: what is taken, and the reads that decided it; `path`: the target's directory.

    `absent`: what literals lead to and isn't there.
    """

    tree: Tree
    sandbox: Sandbox
    files: TreeFiles
    path: str
    absent: set[str] = field(default_factory=set)
    _named: int = 0
    _read: set[str] = field(default_factory=set)
    _followed: set[str] = field(default_factory=set)

    def run(self, expressions: Iterable[str], sources: Iterable[str]) -> None:
        """Take all that is needed. `expressions`: the operator's, read from `path`; `sources`: what else is taken.

        Raises SourceRefused: a source isn't there, a link leads elsewhere, a limit; RenderFailed: a child died.
        """
        self.files.add(self.path)
        for source in sources:
            self._source(posixpath.normpath(posixpath.join(self.path, source)))
        self._follow(self.path, [found for text in expressions for found in literals(text)])
        while new := [path for path in self.files.blobs if path.endswith(SUFFIX) and path not in self._read]:
            for path, found in self._literals(new):
                self._follow(posixpath.dirname(path), found)

    def _source(self, path: str) -> None:
        path = "" if path == "." else path
        entry = resolve_links(self.tree, path).entry
        if entry is None:
            raise SourceRefused.of(printable(path), "isn't in this commit", fix="correct `sources` of the target's renderer")
        if entry.mode == DIRECTORY:
            self.files.add(path)
        else:
            self.files.add_file(path)

    def _literals(self, paths: list[str]) -> Iterator[tuple[str, list[str]]]:
        """Yield the literals of files; a child reads those that no earlier render had read."""
        self._read |= set(paths)
        ids = {self.files.blobs[path] for path in paths}
        new = sorted(ids - _KNOWN.keys())
        blobs = self.tree.blobs(new) if new else {}
        subject = printable(self.path) or "repository"
        found = self.sandbox.run("nix paths", {}, [blobs[oid] for oid in new], decode_literals, subject=subject) if new else []
        if len(found) != len(new):
            raise RenderFailed.of(subject, "was not answered by the render child")
        literals_of = {oid: _KNOWN[oid] for oid in ids if oid in _KNOWN} | dict(zip(new, found, strict=True))
        if len(_KNOWN) + len(new) > MAX_KNOWN:
            _KNOWN.clear()
        _KNOWN.update(literals_of)
        return ((path, literals_of[self.files.blobs[path]]) for path in paths)

    def _follow(self, base: str, found: list[str]) -> None:
        """Take what literals of a file in `base` lead to; what isn't there or leads out of the repository is nix' to refuse."""
        self._named += len(found)
        if self._named > MAX_NAMED:
            raise SourceRefused.of(printable(self.path) or "repository", f"names more than {MAX_NAMED:,} paths in its expressions")
        for text in found:
            target = posixpath.normpath(posixpath.join(base, text))
            if target.startswith("..") or self.files.covers(target):
                continue
            if target == "." or (inside(base, target) and base != target):
                target = posixpath.normpath(posixpath.join(target, _DEFAULT))
            if target not in self._followed:
                self._followed.add(target)
                self._take(target)

    def _take(self, path: str) -> None:
        if len(self._followed) > MAX_LITERALS:
            raise SourceRefused.of(printable(path), f"is one of more than {MAX_LITERALS:,} paths that expressions name")
        resolved = resolve_links(self.tree, path)
        self.files.reads.update(resolved.looked)
        if resolved.entry is None:
            self.absent.add(path)
        elif resolved.entry.mode == DIRECTORY:
            self.files.add(path)
        else:
            self.files.add_file(path)
