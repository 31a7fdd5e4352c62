"""The Rollout of a target whose objects a program makes: one file of the commit, read as the file renderer reads it.

Law: the child reads it; one that is named and isn't there is an error, unless an older commit is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

from handler.model.errors import AnnealError, ManifestInvalid, Problem, RenderFailed, SourceRefused
from handler.model.manifest import Manifest
from handler.model.render import RenderRequest, Where, nowhere
from handler.model.tree import DIRECTORY, MAX_PATH, Tree, TreeEntry, printable, resolve_links
from handler.render.document import MAX_ROLLOUT_BYTES
from handler.render.frames import decode, decode_lines
from handler.render.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class RolloutFile:
    """What the file of a target's Rollout says. `document`: None: it has none; `reads`: all that was looked at."""

    document: Manifest | None = None
    where: Where = nowhere
    reads: dict[str, str] = field(default_factory=dict)


def read_rollout(tree: Tree, request: RenderRequest, path: str, sandbox: Sandbox) -> RolloutFile:
    """Read the Rollout that a request names. `path`: the file's, in its plainest form; empty: none.

    Raises SourceRefused: it isn't there, or no file; ManifestInvalid: it can't be read.
    """
    entry, looked = find_rollout(tree, path, older=request.older)
    if entry is None:
        return RolloutFile(reads=looked)
    shown, data = printable(entry.path, MAX_PATH), tree.blobs([entry.oid])[entry.oid]
    options = {"places": [shown], "rollout": shown, "marks": [], "root": printable(request.path), "called": asdict(request.called)}
    rows = sandbox.run("file", options, [data], decode, subject=shown)
    problems = [row for row in rows if isinstance(row, Problem)]
    if problems:
        raise ManifestInvalid(*problems)
    return RolloutFile(single([row for row in rows if isinstance(row, Manifest)], entry), lines_of(sandbox, entry.path, data), looked)


def find_rollout(tree: Tree, path: str, *, older: bool) -> tuple[TreeEntry | None, dict[str, str]]:
    """Find the target's Rollout, if it names one, and all that was looked at on the way. Raises SourceRefused."""
    if not path:
        return None, {}
    resolved = resolve_links(tree, path)
    entry, subject = resolved.entry, printable(path)
    if entry is None and older:
        return None, dict(resolved.looked)
    if entry is None:
        fix = "correct `rollout` of the target, or add the file"
        raise SourceRefused.of(subject, f"isn't in commit {tree.commit.sha[:12]}; the target takes its Rollout from there", fix=fix)
    if entry.mode == DIRECTORY:
        raise SourceRefused.of(subject, "is a directory; `rollout` of a target names a file")
    if len(tree.blobs([entry.oid])[entry.oid]) > MAX_ROLLOUT_BYTES:
        raise SourceRefused.of(subject, f"has more than {MAX_ROLLOUT_BYTES:,} bytes")
    return entry, dict(resolved.looked)


def single(found: Sequence[Manifest], rollout: TreeEntry) -> Manifest:
    """Return the Rollout that the child has read. Raises RenderFailed: one that says neither that nor what is wrong isn't believed."""
    if len(found) != 1:
        raise RenderFailed.of(printable(rollout.path, MAX_PATH), "was not answered by the render child")
    return found[0]


def lines_of(sandbox: Sandbox, path: str, data: bytes) -> Where:
    """Return what finds the lines of a document's fields, in a child; without them mistakes are reported without lines."""
    return partial(_lines, sandbox, path, data)


def _lines(sandbox: Sandbox, path: str, data: bytes, fields: Sequence[str]) -> Sequence[int]:
    shown = printable(path, MAX_PATH)
    options = {"path": shown, "fields": list(fields)}
    decoder = partial(decode_lines, count=len(fields), last=len(data) + 1)
    try:
        found = sandbox.run("lines", options, [data], decoder, subject=shown)
    except AnnealError:
        found = []
    return found[0] if found else nowhere(fields)
