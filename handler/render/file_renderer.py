"""The file renderer: plain manifests, `.yaml`, `.yml` and `.json`, below one directory, and the target's Rollout beside them.

Law: the worker selects and fetches, the child reads (see `documents` and `objects`). Every mistake of every file is in one error.
A file that was rendered before is neither fetched nor read again: cost follows the change.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, TypeVar

from handler.model.advice import advice
from handler.model.errors import ManifestInvalid, PathMissing, Problem, SourceRefused
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.render import Called, Rendered, RenderRequest, nowhere
from handler.model.tree import DIRECTORY, LINK, MAX_PATH, ReadSet, Tree, TreeEntry, is_lfs_pointer, judged_from, printable, resolve_links
from handler.render.folders import BARE, CHART, IGNORE_FILE, chart_problem, inside
from handler.render.frames import decode
from handler.render.globs import IgnoreLine, Selection, ignore_rules, ignored
from handler.render.objects import twice_declared
from handler.render.rollout_file import find_rollout, lines_of, single
from handler.render.sandbox import Sandbox
from handler.render.tree_files import MAX_FILES, MAX_TOTAL

T = TypeVar("T")
_GONE = (
    "correct `path` of the target, or add the directory; a target whose objects others have taken over can be removed; to delete all"
    " that it has, set prune: {allowEmpty: true}, and commit a directory without manifests: mkdir -p {path} && touch {path}"
)
MAX_PROBLEMS = 100  # mistakes shown at once; a person reads no more
MAX_IGNORE_BYTES = 64 << 10
MAX_COMPARISONS = 10_000_000  # of paths with ignore rules; a comparison takes about a microsecond


@dataclass(slots=True)
class FileSelection:
    """Which files are rendered: the walk below the target's path, through links, `.annealignore` and the globs.

    `found`: path of a file -> its id; `reads`: path -> id of all that was looked at outside `root` (empty: not there): the same reads in
    another commit select the same files. `names`: where a file is seen below `root`, through links or not -> its path. `marks`: path -> id
    of files that aren't rendered, but say that kustomize makes the objects of their folder.
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

        Raises SourceRefused: a link leads nowhere, out of the repository or in a circle, or an ignore file breaks a rule.
        """
        self._directory(self.root.path, "", (self.root.path,))
        return dict(sorted(self.found.items()))

    def _directory(self, real: str, seen_as: str, above: tuple[str, ...]) -> None:
        """Take a directory's files. `seen_as`: where it appears below the target's path; `above`: the directories it was entered from."""
        cut = len(real) + 1 if real else 0
        entries = [(f"{seen_as}/{entry.path[cut:]}".lstrip("/"), entry) for entry in self.tree.walk(real)]
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
        resolved = resolve_links(self.tree, link.path)
        self.reads.update((looked, oid) for looked, oid in resolved.looked if not inside(looked, self.root.path))
        target = resolved.entry
        if target is None:
            if self.selection.takes(path):
                fix = f"remove it, or add it to {IGNORE_FILE}"
                raise SourceRefused.of(printable(link.path), "this symbolic link leads nowhere", fix=fix)
        elif target.mode != DIRECTORY:
            if self.selection.takes(path):
                self._take(path, target)
        elif not self._is_skipped(path, directory=True):
            if any(inside(entered, target.path) for entered in above):
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
            fix = "write directories (`docs/`) instead of their files"
            raise SourceRefused.of(IGNORE_FILE, "too many rules for so many files", fix=fix)

    def _is_skipped(self, path: str, *, directory: bool = False) -> bool:
        """Whether a path or anything above it is ignored; what is below an ignored directory can't be taken back, as in git."""
        if not self.rules:
            return False
        parent = path.rpartition("/")[0]
        if parent and parent not in self.skipped:
            self.skipped[parent] = self._is_skipped(parent, directory=True)
        return self.skipped.get(parent, False) or ignored(path, self.rules, directory=directory)


class FileRenderer:
    """Renders plain manifests. The read set: the directory's own tree, and whatever links reach outside it."""

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        """Return the declared objects in the order of their paths.

        Raises SourceRefused: the path isn't a directory of the commit, or a link, an LFS pointer or a limit forbids it; ManifestInvalid:
        all documents that can't be read or may not be in git; RenderFailed: the child died.
        """
        path = normal(request.path)
        root, reads = directory(tree, path)
        selecting = FileSelection(tree, root, Selection.of(request.include, request.exclude))
        files = selecting.run()
        rollout, looked = find_rollout(tree, normal(request.rollout), older=request.older)
        if rollout:
            files.pop(rollout.path, None)
        if len(files) > MAX_FILES:
            raise SourceRefused.of(path or "repository", f"has {len(files):,} files to render; at most {MAX_FILES:,} are read")
        fresh = {place: oid for place, oid in files.items() if (place, oid) not in request.known}
        known = ReadSet.of({**selecting.reads, **reads, **looked})
        marks = {place: oid for place, oid in selecting.marks.items() if not rollout or place != rollout.path}
        with judged_from(known):
            contents = _contents(tree, fresh | marks | ({rollout.path: rollout.oid} if rollout else {}))
            about = {"marks": [printable(place, MAX_PATH) for place in marks], "root": printable(path), "called": asdict(request.called)}
            read = _in_no_chart(tree, path, request.called, lambda: _read(contents, sandbox, about, rollout))
            found = {key: request.known.get(key) or read.get(printable(key[0], MAX_PATH), ()) for key in files.items()}
            manifests = tuple(manifest for documents in found.values() for manifest in documents)
            refuse(twice_declared(manifests))  # the child has seen the fresh files only
            document = single(read.get(printable(rollout.path, MAX_PATH), ()), rollout) if rollout else None
        keys = _keys(selecting.names, {key[0]: found[key] for key in found})
        where = lines_of(sandbox, rollout.path, contents[rollout.path]) if rollout else nowhere
        return Rendered(manifests, known, found, document, keys, where)


def _in_no_chart(tree: Tree, path: str, called: Called, read: Callable[[], T]) -> T:
    """Read; mistakes in a part of a Helm chart, such as a template, are reported as the chart's."""
    try:
        return read()
    except ManifestInvalid:
        above = path.split("/")[:-1]
        folders = ["/".join(above[:count]) for count in range(len(above), -1, -1)] if path else []
        chart = next((each for each in folders if tree.lookup(f"{each}/{CHART}".lstrip("/"))), None)
        if chart is None:
            raise
        raise ManifestInvalid(chart_problem(printable(chart), called, printable(path))) from None


def _read(
    contents: Mapping[str, bytes], sandbox: Sandbox, about: Mapping[str, Any], rollout: TreeEntry | None
) -> dict[str, tuple[Manifest, ...]]:
    """Read files in the child and return their objects by printable path; raise every mistake."""
    if not contents:
        return {}
    places = [printable(place, MAX_PATH) for place in contents]
    options = {**about, "places": places, "rollout": printable(rollout.path, MAX_PATH) if rollout else ""}
    rows = sandbox.run("file", options, list(contents.values()), decode, subject=about["root"] or "repository")
    refuse([row for row in rows if isinstance(row, Problem)])
    manifests = (row for row in rows if isinstance(row, Manifest))
    return {place: tuple(group) for place, group in groupby(manifests, key=lambda row: row.place.rpartition(":")[0])}


def _keys(names: Mapping[str, str], found: Mapping[str, Sequence[Manifest]]) -> dict[str, tuple[Identity, ...]]:
    """Return how a Rollout may call objects: by the path where their file is seen, its further documents by `!1` and so on."""
    first: dict[str, tuple[Identity, ...]] = {}
    further: dict[str, tuple[Identity, ...]] = {}
    for name, path in names.items():
        for number, document in enumerate(_by_document(found.get(path, ()))):
            (further if number else first)[f"{name}!{number}" if number else name] = document
    return {**further, **first}


def _by_document(manifests: Iterable[Manifest]) -> list[tuple[Identity, ...]]:
    found: list[list[Identity]] = []
    for manifest in manifests:
        if manifest.item and found:
            found[-1].append(manifest.identity)
        else:
            found.append([manifest.identity])
    return list(map(tuple, found))


def normal(path: str) -> str:
    """Return `deploy/prod` for `./deploy//prod/`, the empty root for `.`; `..` stays, and is refused when it leads out."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def directory(tree: Tree, path: str) -> tuple[TreeEntry, dict[str, str]]:
    """Return the directory that a target renders, and what was looked at. Raises PathMissing; SourceRefused: it is a file."""
    resolved = resolve_links(tree, path)
    if resolved.entry is None:
        fix = advice(_GONE, path, posixpath.join(path, ".gitkeep"))
        raise PathMissing.of(printable(path), f"isn't in commit {tree.commit.sha[:12]}", fix=fix)
    if resolved.entry.mode != DIRECTORY:
        raise SourceRefused.of(printable(path), "is a file; `path` of a target names a directory")
    return resolved.entry, dict(resolved.looked)


def _contents(tree: Tree, files: Mapping[str, str]) -> dict[str, bytes]:
    blobs = tree.blobs(set(files.values()))
    contents = {path: blobs[oid] for path, oid in files.items()}
    lfs = "is a Git LFS pointer; LFS isn't supported"
    pointers = [Problem(printable(path), lfs) for path, blob in contents.items() if is_lfs_pointer(blob)]
    if pointers:
        raise SourceRefused(*pointers[:MAX_PROBLEMS])
    total = sum(map(len, contents.values()))
    if total > MAX_TOTAL:
        raise SourceRefused.of("manifests", f"have {total:,} bytes together; at most {MAX_TOTAL:,} are read")
    return contents


def refuse(problems: Sequence[Problem]) -> None:
    """Raise ManifestInvalid with these mistakes, if there are any, as `at_most` says them."""
    if problems:
        raise ManifestInvalid(*at_most(problems))


def at_most(problems: Sequence[Problem]) -> list[Problem]:
    """Return the first MAX_PROBLEMS mistakes, and one that says how many more there are."""
    more = len(problems) - MAX_PROBLEMS
    return [*problems[:MAX_PROBLEMS], *([Problem("render", f"{more:,} more mistakes are not shown")] if more > 0 else [])]
