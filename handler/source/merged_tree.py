"""The tree that merging a pull request would make, of base and head, by what each has changed since the commit at which they part.

    unchanged on one side      the other side's, a whole directory without a look into it
    changed on both            directories by their names; a text by its lines (`text_merge`); else a conflict
    may be renamed             a conflict, where git would have to guess (`tree_renames`)

It is made here because not all hosts make one, and those that do make it late. Law: what git would ask a person about is a conflict here;
ids are those that git would give, for read sets compare them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from handler.model.errors import SourceRefused
from handler.model.tree import DIRECTORY, EXECUTABLE, FILE, CommitInfo, Tree, TreeEntry, printable
from handler.source.host_limits import HostLimits
from handler.source.text_merge import MergeBudget, merged
from handler.source.tree_renames import Directories, uncertain

LIMITS = HostLimits()
MOST = 300
"""Files that are merged by their lines; what both sides have changed beyond that is left to git."""
BATCH = 10
"""Files that are fetched at once: few requests, and not much beyond what a merge may fetch."""
_ATTRIBUTES = ".gitattributes"
_OF_ONE_ENDING = re.compile(rb"[ \t\r]*\*(\.[A-Za-z0-9_.-]+)[ \t\r]")
_Versions = tuple[TreeEntry, TreeEntry, TreeEntry]
"""One file in the ancestor, the base and the head."""


class MergeSide(Tree, Directories, Protocol):
    """A commit's tree that says what lies directly in a directory."""


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
    renamed = uncertain(base, head, ancestor, LIMITS) if merging.loses else []
    return MergedTree(head.commit, tuple(dict.fromkeys([*merging.conflicts, *renamed])), root, merging.texts.made, (base, head))


class _Merging:
    """`loses`: whether something may be gone on both sides, or a directory on one that the other has changed, so that renames matter."""

    def __init__(self, base: MergeSide, head: MergeSide, ancestor: MergeSide) -> None:
        self._base, self._head, self._ancestor = base, head, ancestor
        self.conflicts: list[str] = []
        self.texts = _Texts(base, head, ancestor)
        self.loses = False
        self._seen = 0

    def directory(self, path: str) -> _Node:
        """Return a directory that both sides have changed."""
        if path.count("/") >= LIMITS.depth:
            raise SourceRefused.of(printable(path), f"is deeper than {LIMITS.depth} directories")
        ours, theirs, was = (side.children(path) for side in (self._base, self._head, self._ancestor))
        names = dict.fromkeys([*ours, *theirs, *was])
        self._seen += len(names)
        if self._seen > LIMITS.entries:  # few trees that name each other can make very many
            raise SourceRefused.of(printable(path) or "the repository", f"has more than {LIMITS.entries} files and directories")
        triples = {name: (ours.get(name), theirs.get(name), was.get(name)) for name in names}
        texts = self.texts.merged(path, [versions for each in triples.values() if (versions := _changed_twice(*each))])
        found = {name: node for name in names if (node := self._node(f"{path}/{name}" if path else name, *triples[name], texts))}
        children = dict(sorted(found.items(), key=lambda item: _sorted_by(item[0], item[1].entry)))
        return _Node(TreeEntry(path, DIRECTORY, _tree_id(children)), None, children)

    def _node(
        self, path: str, ours: TreeEntry | None, theirs: TreeEntry | None, was: TreeEntry | None, texts: Mapping[str, TreeEntry]
    ) -> _Node | None:
        """Return what lies at a path in the end; None: nothing. `texts`: files that were merged."""
        if _is_same(theirs, was):
            return _Node(ours, self._base) if ours else None
        if _is_same(ours, was):
            return _Node(theirs, self._head) if theirs else None
        self.loses = self.loses or _is_losing(ours, theirs, was)
        if _is_same(ours, theirs):
            return _Node(ours, self._base) if ours else None
        if all(each is None or each.mode == DIRECTORY for each in (ours, theirs, was)):
            made = self.directory(path)
            return made if made.children else None
        entry = texts.get(path)
        if entry is None:
            self.conflicts.append(path)
        return _Node(entry) if entry else None


class _Texts:
    """Merges files that both sides have changed. `made`: what came of it, by id."""

    def __init__(self, base: MergeSide, head: MergeSide, ancestor: MergeSide) -> None:
        self._sides = ancestor, base, head
        self.made: dict[str, bytes] = {}
        self._tried = 0
        self._budget = MergeBudget()

    def merged(self, directory: str, files: Sequence[_Versions]) -> dict[str, TreeEntry]:
        """Return files of one directory with the changes of both sides, by path; what isn't there is a conflict."""
        files = files[: MOST - self._tried]
        self._tried += len(files)
        endings = tuple(self._endings(directory)) if files else ()
        plain = [each for each in files if not each[0].path.encode().lower().endswith(endings)]
        found: dict[str, TreeEntry] = {}
        for at in range(0, len(plain), BATCH):
            batch = plain[at : at + BATCH]
            contents = [self._blobs(side, [each[place].oid for each in batch]) for place, side in enumerate(self._sides)]
            found |= {each[0].path: entry for each in batch if (entry := self._text(each, contents))}
        return found

    def _text(self, versions: _Versions, contents: Sequence[Mapping[str, bytes]]) -> TreeEntry | None:
        original, one, other = (content.get(entry.oid) for entry, content in zip(versions, contents, strict=True))
        text = None if original is None or one is None or other is None else merged(original, one, other, self._budget)
        if text is None:
            return None
        was, ours, theirs = versions
        oid = hashlib.sha1(b"blob %d\0%s" % (len(text), text), usedforsecurity=False).hexdigest()
        self.made[oid] = text
        return TreeEntry(was.path, theirs.mode if ours.mode == was.mode else ours.mode, oid)

    def _endings(self, directory: str) -> set[bytes]:
        """Return how names end, in lower case, that git merges in another way by its attributes (gitattributes(5)); empty: any name."""
        parts = directory.split("/") if directory else []
        places = ["/".join([*parts[:count], _ATTRIBUTES]) for count in range(len(parts) + 1)]
        found = set[bytes]()
        for side in self._sides[1:]:
            entries = [entry for place in places if (entry := side.lookup(place)) and entry.mode != DIRECTORY]
            texts = self._blobs(side, [entry.oid for entry in entries if _is_file(entry)])
            if any(entry.oid not in texts for entry in entries):  # a link, or more than may be fetched
                return {b""}
            found |= {_ending(line) for text in texts.values() for line in text.split(b"\n") if _is_of_merges(line)}
        return found

    def _blobs(self, side: MergeSide, oids: Sequence[str]) -> Mapping[str, bytes]:
        """Return contents; nothing once a merge has fetched what it may."""
        if not oids or self._budget.content < 0:
            return {}
        found = side.blobs(oids)
        return found if self._budget.hold(sum(len(content) for content in found.values())) else {}


def _is_of_merges(line: bytes) -> bool:
    """Whether a line of attributes is about how files are merged; `binary` is short for `-diff -merge -text`."""
    return (b"merge" in line or b"binary" in line) and not line.lstrip(b" \t\r").startswith(b"#")


def _ending(line: bytes) -> bytes:
    """Return how names end that a line of attributes is about; empty: any."""
    found = _OF_ONE_ENDING.match(line)
    return found[1].lower() if found else b""


def _changed_twice(ours: TreeEntry | None, theirs: TreeEntry | None, was: TreeEntry | None) -> _Versions | None:
    """Return the versions of a file that both sides have changed, each in its way; None: it is no such one."""
    if was is None or ours is None or theirs is None or not (_is_file(was) and _is_file(ours) and _is_file(theirs)):
        return None
    return None if _is_same(theirs, was) or _is_same(ours, was) or _is_same(ours, theirs) else (was, ours, theirs)


def _is_losing(ours: TreeEntry | None, theirs: TreeEntry | None, was: TreeEntry | None) -> bool:
    """Whether both sides may have removed what was there, or one a directory that the other has changed."""
    if was is None:
        return False
    if _is_same(ours, theirs):
        return not (ours and _is_file(ours) and _is_file(was))
    return was.mode == DIRECTORY and not (ours and theirs)


def _is_file(entry: TreeEntry) -> bool:
    return entry.mode in (FILE, EXECUTABLE)


def _is_same(one: TreeEntry | None, other: TreeEntry | None) -> bool:
    return (one and (one.mode, one.oid)) == (other and (other.mode, other.oid))


def _sorted_by(name: str, entry: TreeEntry) -> bytes:
    return f"{name}/".encode() if entry.mode == DIRECTORY else name.encode()


def _tree_id(children: Mapping[str, _Node]) -> str:
    """Return the id that git gives a tree (gitformat-pack(5), objects)."""
    rows = (b"%o %s\0%s" % (node.entry.mode, name.encode(), bytes.fromhex(node.entry.oid)) for name, node in children.items())
    content = b"".join(rows)
    return hashlib.sha1(b"tree %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()
