"""Which files of a commit are rendered: the walk below the target's path, through links, `.annealignore` and the globs.

Law: reads trees and the blobs of links and ignore files only. All it looks at outside the target's directory is noted, also what wasn't
there: the same reads in another commit select the same files.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from handler.model.errors import SourceRefused
from handler.model.tree import DIRECTORY, LINK, Tree, TreeEntry, printable, resolve_links
from handler.render.folders import BARE, IGNORE_FILE
from handler.render.globs import IgnoreLine, Selection, ignore_rules, ignored

MAX_IGNORE_BYTES = 64 << 10
MAX_COMPARISONS = 10_000_000
"""Of paths with ignore rules; a comparison takes about a microsecond."""


@dataclass(slots=True)
class FileSelection:
    """One selection. `found`: path of a file -> its id; `reads`: path -> id of what was looked at outside `root` (empty: not there).

    `names`: where a file is seen below `root`, through links or not -> its path. `marks`: path -> id of files that aren't rendered, but say
    that kustomize makes the objects of their folder.
    """

    tree: Tree
    root: TreeEntry
    selection: Selection
    found: dict[str, str] = field(default_factory=dict)
    reads: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)
    rules: dict[str, tuple[IgnoreLine, ...]] = field(default_factory=dict)
    skipped: dict[str, bool] = field(default_factory=dict)
    compared: int = 0

    def run(self) -> dict[str, str]:
        """Return path -> id of every file to render, each once, by its true path, in order.

        Raises:
            SourceRefused: a link leads nowhere, out of the repository or in a circle, or an ignore file breaks a rule.
        """
        self._directory(self.root.path, "", (self.root.path,))
        return dict(sorted(self.found.items()))

    def _directory(self, real: str, seen_as: str, above: tuple[str, ...]) -> None:
        """Take a directory's files. `seen_as`: where it appears below the target's path; `above`: the directories it was entered from."""
        cut = len(real) + 1 if real else 0
        entries = [(_join(seen_as, entry.path[cut:]), entry) for entry in self.tree.walk(real)]
        self._read_rules(entries)
        for path, entry in entries:
            if not self._is_skipped(path):
                if entry.mode == LINK:
                    self._link(path, entry, above)
                elif self.selection.takes(path):
                    self._take(path, entry)
                elif path.rpartition("/")[2] == BARE and self.selection.takes(f"{path}.yaml") and not self.selection.excludes(path):
                    self.marks[entry.path] = entry.oid  # selected as its siblings are: by what is included, not by how names end

    def _link(self, path: str, link: TreeEntry, above: tuple[str, ...]) -> None:
        """A link stands for what it leads to, under its own name."""
        resolved = resolve_links(self.tree, link.path)
        self.reads.update((looked, oid) for looked, oid in resolved.looked if not _inside(looked, self.root.path))
        target = resolved.entry
        if target is None:
            if self.selection.takes(path):
                raise SourceRefused.of(
                    printable(link.path), "this symbolic link leads nowhere", fix=f"remove it, or add it to {IGNORE_FILE}"
                )
        elif target.mode != DIRECTORY:
            if self.selection.takes(path):
                self._take(path, target)
        elif not self._is_skipped(path, directory=True):
            if any(_inside(entered, target.path) for entered in above):
                raise SourceRefused.of(printable(link.path), "this symbolic link leads to a directory that it is in")
            self._directory(target.path, path, (*above, target.path))

    def _take(self, path: str, entry: TreeEntry) -> None:
        self.found[entry.path] = entry.oid
        self.names[path] = entry.path

    def _read_rules(self, entries: list[tuple[str, TreeEntry]]) -> None:
        """Read the ignore files among the entries before any of them is judged."""
        files = {path: entry for path, entry in entries if path.rpartition("/")[2] == IGNORE_FILE}
        for entry in files.values():
            if entry.mode == LINK:
                raise SourceRefused.of(printable(entry.path), "an ignore file can't be a symbolic link")
        blobs = self.tree.blobs([entry.oid for entry in files.values()]) if files else {}
        for path, entry in files.items():
            blob = blobs[entry.oid]
            if len(blob) > MAX_IGNORE_BYTES:
                raise SourceRefused.of(printable(entry.path), f"has more than {MAX_IGNORE_BYTES:,} bytes")
            self.rules[path.rpartition("/")[0]] = ignore_rules(blob.decode("utf-8-sig", "replace"))
        self.compared += len(entries) * sum(map(len, self.rules.values()))
        if self.compared > MAX_COMPARISONS:
            raise SourceRefused.of(
                IGNORE_FILE, "too many rules for so many files", fix="write directories (`docs/`) instead of their files"
            )

    def _is_skipped(self, path: str, *, directory: bool = False) -> bool:
        """Whether a path or anything above it is ignored; what is below an ignored directory can't be taken back, as in git."""
        if not self.rules:
            return False
        parent = path.rpartition("/")[0]
        if parent and parent not in self.skipped:
            self.skipped[parent] = self._is_skipped(parent, directory=True)
        return self.skipped.get(parent, False) or ignored(path, self.rules, directory=directory)


def _join(above: str, below: str) -> str:
    return f"{above}/{below}" if above else below


def _inside(path: str, directory: str) -> bool:
    return not directory or path == directory or path.startswith(f"{directory}/")
