"""The tree that merging a pull request would make, of base and head, by what each has changed since the commit at which they part.

    unchanged on one side      the other side's, a whole directory without a look into it
    changed on both            directories by their names; a text by its lines (`text_merge`); else a conflict

It is made here because not all hosts make one, and those that do make it late. Law: what git would ask a person about is a conflict here;
ids are those that git would give, for read sets compare them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from handler.model.errors import SourceRefused
from handler.model.tree import DIRECTORY, LINK, SUBMODULE, CommitInfo, Tree, TreeEntry, printable
from handler.source.host_limits import HostLimits
from handler.source.text_merge import MergeBudget, merged

LIMITS = HostLimits()
MOST = 300
"""Files that are merged by their lines; what both sides have changed beyond that is left to git."""


class MergeSide(Tree, Protocol):
    """A commit's tree that says what lies directly in a directory."""

    def children(self, path: str) -> Mapping[str, TreeEntry]:
        """Return the entries of a directory by name; nothing where none is. Raises SourceRefused."""


@dataclass(frozen=True, slots=True)
class _Node:
    """One entry. `side`: the tree that has it, with all below; None: it was merged, and has `children` if it is a directory."""

    entry: TreeEntry
    side: MergeSide | None = None
    children: Mapping[str, _Node] = field(default_factory=dict)


@dataclass
class MergedTree:
    """`handler.model.tree.Tree`. `conflicts`: paths that can't be merged; with any it is no tree to be rendered."""

    commit: CommitInfo
    conflicts: tuple[str, ...]
    root: _Node = field(repr=False)
    texts: Mapping[str, bytes] = field(repr=False)
    sides: tuple[MergeSide, ...] = field(repr=False)
    _having: dict[str, MergeSide] = field(default_factory=dict, repr=False)

    def lookup(self, path: str) -> TreeEntry | None:
        """Return the entry at a path, symlinks not followed, or None; empty: the root. Raises SourceRefused."""
        node = self._node(path)
        if node is None or node.side is None:
            return node.entry if node else None
        return self._noted(node.side.lookup(path), node.side)

    def walk(self, path: str) -> Iterator[TreeEntry]:
        """Yield every file and link below a directory, sorted as git sorts them. Raises SourceRefused."""
        node = self._node(path)
        if node is None:
            return
        if node.side is not None:
            for entry in node.side.walk(path):
                self._noted(entry, node.side)
                yield entry
        elif node.entry.mode == DIRECTORY:
            for child in node.children.values():
                yield from self._below(child)

    def blobs(self, oids: Iterable[str], ahead: Iterable[str] = ()) -> Mapping[str, bytes]:
        """Return the contents of these blobs, of each from the side that has it. Raises GitUnavailable, SourceRefused."""
        wanted, later = list(dict.fromkeys(oids)), set(ahead)
        found = {oid: self.texts[oid] for oid in wanted if oid in self.texts}
        for side in self.sides:
            mine = [oid for oid in wanted if oid not in found and self._having.get(oid, self.sides[-1]) is side]
            beside = [oid for oid in later if self._having.get(oid) is side]
            found |= side.blobs(mine, beside) if mine or beside else {}
        return found

    def _node(self, path: str) -> _Node | None:
        """Return the node of a path, or the nearest one above it that a side has whole; None: there is nothing."""
        node: _Node | None = self.root
        for part in path.split("/") if path else ():
            if node is None or node.side is not None:
                break
            node = node.children.get(part)
        return node

    def _below(self, node: _Node) -> Iterator[TreeEntry]:
        if node.entry.mode == DIRECTORY:
            yield from self.walk(node.entry.path)
        elif node.side is not None:
            self._noted(node.entry, node.side)
            yield node.entry
        else:
            yield node.entry

    def _noted(self, entry: TreeEntry | None, side: MergeSide) -> TreeEntry | None:
        if entry is not None:
            self._having.setdefault(entry.oid, side)
        return entry


def merge(base: MergeSide, head: MergeSide, ancestor: MergeSide) -> MergedTree:
    """Return the tree of both, under the head's commit. `ancestor`: the commit at which they part. Raises GitUnavailable, SourceRefused."""
    merging = _Merging(base, head, ancestor)
    root = merging.directory("")
    return MergedTree(head.commit, tuple(merging.conflicts), root, merging.texts, (base, head))


class _Merging:
    def __init__(self, base: MergeSide, head: MergeSide, ancestor: MergeSide) -> None:
        self._base, self._head, self._ancestor = base, head, ancestor
        self.conflicts: list[str] = []
        self.texts: dict[str, bytes] = {}
        self._tried = self._seen = 0
        self._budget = MergeBudget()

    def directory(self, path: str) -> _Node:
        """Return a directory that both sides have changed."""
        if path.count("/") >= LIMITS.depth:
            raise SourceRefused.of(printable(path), f"is deeper than {LIMITS.depth} directories")
        sides = [side.children(path) for side in (self._base, self._head, self._ancestor)]
        names = dict.fromkeys(name for children in sides for name in children)
        self._seen += len(names)
        if self._seen > LIMITS.entries:  # few trees that name each other can make very many
            raise SourceRefused.of(printable(path) or "the repository", f"has more than {LIMITS.entries} files and directories")
        found = {
            name: node for name in names if (node := self._node(f"{path}/{name}" if path else name, *(each.get(name) for each in sides)))
        }
        children = dict(sorted(found.items(), key=lambda item: _sorted_by(item[0], item[1].entry)))
        return _Node(TreeEntry(path, DIRECTORY, _tree_id(children)), None, children)

    def _node(self, path: str, ours: TreeEntry | None, theirs: TreeEntry | None, was: TreeEntry | None) -> _Node | None:
        """Return what lies at a path in the end; None: nothing."""
        if _is_same(theirs, was) or _is_same(ours, theirs):
            return _Node(ours, self._base) if ours else None
        if _is_same(ours, was):
            return _Node(theirs, self._head) if theirs else None
        if all(each is None or each.mode == DIRECTORY for each in (ours, theirs, was)):
            made = self.directory(path)
            return made if made.children else None
        entry = self._text(path, ours, theirs, was)
        if entry is None:
            self.conflicts.append(path)
        return _Node(entry) if entry else None

    def _text(self, path: str, ours: TreeEntry | None, theirs: TreeEntry | None, was: TreeEntry | None) -> TreeEntry | None:
        """Return a file with the changes of both sides; None: it is a conflict."""
        self._tried += 1
        if self._tried > MOST:
            return None
        if ours is None or theirs is None or was is None or any(each.mode in (DIRECTORY, LINK, SUBMODULE) for each in (ours, theirs, was)):
            return None
        mode = theirs.mode if ours.mode == was.mode else ours.mode
        pairs = ((self._ancestor, was), (self._base, ours), (self._head, theirs))
        original, one, other = (side.blobs([entry.oid])[entry.oid] for side, entry in pairs)
        text = merged(original, one, other, self._budget)
        if text is None:
            return None
        oid = hashlib.sha1(b"blob %d\0%s" % (len(text), text), usedforsecurity=False).hexdigest()
        self.texts[oid] = text
        return TreeEntry(path, mode, oid)


def _is_same(one: TreeEntry | None, other: TreeEntry | None) -> bool:
    return (one and (one.mode, one.oid)) == (other and (other.mode, other.oid))


def _sorted_by(name: str, entry: TreeEntry) -> bytes:
    return f"{name}/".encode() if entry.mode == DIRECTORY else name.encode()


def _tree_id(children: Mapping[str, _Node]) -> str:
    """Return the id that git gives a tree (gitformat-pack(5), objects)."""
    rows = (b"%o %s\0%s" % (node.entry.mode, name.encode(), bytes.fromhex(node.entry.oid)) for name, node in children.items())
    content = b"".join(rows)
    return hashlib.sha1(b"tree %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()
