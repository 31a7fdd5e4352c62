"""The file renderer: plain manifests, `.yaml`, `.yml` and `.json`, below one directory.

Law: the worker selects and fetches, the child reads (see `documents` and `objects`). Every mistake of every file is in one error.
A file that was rendered before is neither fetched nor read again: cost follows the change. Whether an object stands in two files is
asked again of the whole set by `handler.plan.admit`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from handler.model.errors import ManifestInvalid, Problem, SourceRefused
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.render import Rendered, RenderRequest
from handler.model.tree import DIRECTORY, MAX_PATH, Entry, ReadSet, Tree, is_lfs_pointer, printable, resolve_links
from handler.render.frames import decode
from handler.render.globs import Selection
from handler.render.sandbox import Sandbox
from handler.render.selecting import Selecting

MAX_FILES = 20_000
MAX_TOTAL = 100_000_000
MAX_PROBLEMS = 100
"""Mistakes shown at once; a person reads no more."""


class FileRenderer:
    """Renders plain manifests. The read set: the directory's own tree, and whatever links reach outside it."""

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        """Return the declared objects in the order of their paths.

        Raises:
            SourceRefused: the path isn't a directory of the commit, or a link, an LFS pointer or a limit forbids it.
            ManifestInvalid: documents that can't be read or may not be in git, all of them.
            RenderFailed: the child died.
        """
        path = _normal(request.path)
        root, reads = _root(tree, path)
        selecting = Selecting(tree, root, Selection.of(request.include, request.exclude))
        files = selecting.run()
        if len(files) > MAX_FILES:
            raise SourceRefused.of(path or "repository", f"has {len(files):,} files to render; at most {MAX_FILES:,} are read")
        fresh = {place: oid for place, oid in files.items() if (place, oid) not in request.known}
        read = _read(_contents(tree, fresh), sandbox, path)
        found = {key: request.known.get(key) or read.get(printable(key[0], MAX_PATH), ()) for key in files.items()}
        manifests = tuple(manifest for documents in found.values() for manifest in documents)
        _refuse(_declared_twice(manifests))  # the child has seen the fresh files only
        return Rendered(manifests, ReadSet.of({**selecting.reads, **reads}), found)


def _read(contents: Mapping[str, bytes], sandbox: Sandbox, path: str) -> dict[str, tuple[Manifest, ...]]:
    """Read files in the child and return their objects by printable path; raise every mistake."""
    if not contents:
        return {}
    places = [printable(place, MAX_PATH) for place in contents]
    rows = sandbox.run("file", {"places": places}, list(contents.values()), decode, subject=printable(path) or "repository")
    _refuse([row for row in rows if isinstance(row, Problem)])
    manifests = (row for row in rows if isinstance(row, Manifest))
    return {place: tuple(group) for place, group in groupby(manifests, key=lambda row: row.place.rpartition(":")[0])}


def _declared_twice(manifests: Iterable[Manifest]) -> list[Problem]:
    """Name both places of every object that two files declare."""
    places: dict[Identity, str] = {}
    return [
        Problem(str(manifest.identity), f"declared twice, first at {earlier}", manifest.place)
        for manifest in manifests
        if (earlier := places.setdefault(manifest.identity, manifest.place)) is not manifest.place
    ]


def _normal(path: str) -> str:
    """`./deploy//prod/` -> `deploy/prod`, `.` -> the empty root; `..` stays, and is refused when it leads out."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _root(tree: Tree, path: str) -> tuple[Entry, dict[str, str]]:
    """Find the directory to render and all that was looked at on the way."""
    resolved = resolve_links(tree, path)
    if resolved.entry is None:
        raise SourceRefused.of(
            printable(path), f"isn't in commit {tree.commit.sha[:12]}", fix="correct `path` of the target, or add the directory"
        )
    if resolved.entry.mode != DIRECTORY:
        raise SourceRefused.of(printable(path), "is a file; `path` of a target names a directory")
    return resolved.entry, dict(resolved.looked)


def _contents(tree: Tree, files: Mapping[str, str]) -> dict[str, bytes]:
    """Fetch every file's content at once."""
    blobs = tree.blobs(set(files.values()))
    contents = {path: blobs[oid] for path, oid in files.items()}
    pointers = [
        Problem(printable(path), "is a Git LFS pointer; LFS isn't supported") for path, blob in contents.items() if is_lfs_pointer(blob)
    ]
    if pointers:
        raise SourceRefused(*pointers[:MAX_PROBLEMS])
    total = sum(map(len, contents.values()))
    if total > MAX_TOTAL:
        raise SourceRefused.of("manifests", f"have {total:,} bytes together; at most {MAX_TOTAL:,} are read")
    return contents


def _refuse(problems: list[Problem]) -> None:
    if len(problems) > MAX_PROBLEMS:
        more = Problem("render", f"{len(problems) - MAX_PROBLEMS:,} more mistakes are not shown")
        raise ManifestInvalid(*problems[:MAX_PROBLEMS], more)
    if problems:
        raise ManifestInvalid(*problems)
