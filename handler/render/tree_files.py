"""Directories of a commit as regular files: what a program is given to read in place of a work tree.

Law: no link is ever handed on: one that leads to a file or directory of the repository is replaced by what it leads to, every other is
refused by name. Every tree and link that decided what is there is in `reads`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from handler.model.errors import AnnealError, SourceRefused
from handler.model.tree import DIRECTORY, LINK, OUTSIDE, ReadSet, Tree, TreeEntry, is_lfs_pointer, judged_from, printable, resolve_links
from handler.render.folders import inside

MAX_FILES = 20_000
MAX_TOTAL = 100_000_000
_LINK_FIX = "remove it, or let it lead to a file of the repository"


@dataclass(slots=True)
class TreeFiles:
    """What was taken of a tree. `blobs`: path -> id; `reads`: path -> id of each directory and of links' ends; `pointers`: Git LFS's.

    `taken`: the directories, each as it was asked for.
    """

    tree: Tree
    blobs: dict[str, str] = field(default_factory=dict)
    reads: dict[str, str] = field(default_factory=dict)
    pointers: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)

    @contextlib.contextmanager
    def judged(self) -> Iterator[None]:
        """Let an error say from which reads it follows: those until then."""
        try:
            yield
        except AnnealError:
            with judged_from(ReadSet.of(self.decisive())):
                raise

    def add(self, directory: str) -> None:
        """Take a directory with everything below it. Raises SourceRefused: it isn't there, a link leads elsewhere, there are too many."""
        if self.covers(directory):
            return
        resolved = resolve_links(self.tree, directory)
        self.reads.update(resolved.looked)
        if resolved.entry is None or resolved.entry.mode != DIRECTORY:
            raise SourceRefused.of(printable(directory), f"is no directory of commit {self.tree.commit.sha[:12]}")
        self.taken.add(directory)
        self._walk(resolved.entry, directory, (resolved.entry.path,))

    def covers(self, path: str) -> bool:
        """Whether a path is, or lies in, a directory that was taken."""
        return path in self.taken or any(above in self.taken for above in _above(path))

    def add_file(self, path: str) -> bool:
        """Take one file; False: there is none. Raises SourceRefused: a link leads elsewhere."""
        resolved = resolve_links(self.tree, path)
        self.reads.update(resolved.looked)
        if resolved.entry is None or resolved.entry.mode == DIRECTORY:
            return False
        self.blobs[path] = resolved.entry.oid
        return True

    def decisive(self) -> dict[str, str]:
        """Return the reads without those that follow from a directory's: its id stands for everything below it."""
        trees = {path for path, oid in self.reads.items() if oid and self._is_tree(path)}
        return {path: oid for path, oid in self.reads.items() if not any(above in trees for above in _above(path))}

    def _is_tree(self, path: str) -> bool:
        entry = self.tree.lookup(path)
        return entry is not None and entry.mode == DIRECTORY

    def contents(self, wanted: Callable[[str], bool] = lambda _: True) -> dict[str, bytes]:
        """Return the content of every `wanted` file but Git LFS' pointers, which `pointers` names then.

        Raises SourceRefused: they are too large.
        """
        ids = {path: oid for path, oid in self.blobs.items() if wanted(path)}
        blobs = self.tree.blobs(set(ids.values()))
        total = sum(len(blobs[oid]) for oid in ids.values())
        if total > MAX_TOTAL:
            raise SourceRefused.of("files", f"have {total:,} bytes together; at most {MAX_TOTAL:,} are rendered")
        self.pointers = {path for path, oid in ids.items() if is_lfs_pointer(blobs[oid])}
        return {path: blobs[oid] for path, oid in ids.items() if path not in self.pointers}

    def _walk(self, directory: TreeEntry, seen_as: str, above: tuple[str, ...]) -> None:
        """Take what is below a directory. `seen_as`: where a program sees it; `above`: the directories that it was entered from."""
        cut = len(directory.path) + 1 if directory.path else 0
        for entry in self.tree.walk(directory.path):
            path = f"{seen_as}/{entry.path[cut:]}".lstrip("/")
            if entry.mode == LINK:
                self._link(path, entry, above)
            else:
                self._take(path, entry)

    def _link(self, path: str, link: TreeEntry, above: Iterable[str]) -> None:
        resolved = resolve_links(self.tree, link.path)
        self.reads.update(resolved.looked)
        entry = resolved.entry
        if entry is None:
            raise SourceRefused.of(printable(link.path), "this symbolic link leads nowhere", fix=_LINK_FIX)
        if entry.mode != DIRECTORY:
            self._take(path, entry)
            return
        if any(inside(entered, entry.path) for entered in above):
            raise SourceRefused.of(printable(link.path), "this symbolic link leads to a directory that it is in", fix=_LINK_FIX)
        self._walk(entry, path, (*above, entry.path))

    def _take(self, path: str, entry: TreeEntry) -> None:
        self.blobs[path] = entry.oid
        if len(self.blobs) > MAX_FILES:
            raise SourceRefused.of(printable(path), f"is one of more than {MAX_FILES:,} files; at most so many are rendered")


def _above(path: str) -> Iterator[str]:
    """Yield the directories around a path, the root last; a read from elsewhere has none."""
    while path and not path.startswith(OUTSIDE):
        path = path.rpartition("/")[0]
        yield path
