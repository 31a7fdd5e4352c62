"""Objects of git in memory, by id; dulwich, loaded at the first, parses and checks commits and trees, `tree_names` the names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from handler.model.errors import SourceRefused
from handler.model.quotation import quoted
from handler.model.tree import CommitInfo, printable
from handler.source.tree_names import Children, children_of, refused

if TYPE_CHECKING:
    from dulwich.objects import Commit

COMMIT, TREE, BLOB = 1, 2, 3
Objects = dict[str, tuple[int, bytes]]  # hex id -> type number and content
Accept = Callable[[str, bytes, str], None]
"""Judges (commit id, raw commit object, id of its tree) before any tree is read; raises CommitUnverified."""
MAX_TEXT = 200


def accept_any(sha: str, commit: bytes, tree: str) -> None:
    """Accept any commit, signed or not."""


def read_commit(sha: str, data: bytes) -> tuple[CommitInfo, str]:
    """Parse a commit; return what history shows and the hex id of its tree. Raises SourceRefused: it isn't well formed."""
    from dulwich.errors import FileFormatException  # noqa: PLC0415 - a directory is read without dulwich
    from dulwich.objects import Commit  # noqa: PLC0415 - the same

    try:
        commit = Commit.from_string(data)
        commit.check()
        return info_of(sha, commit), commit.tree.decode()
    except (FileFormatException, ValueError, AssertionError, IndexError) as error:
        raise SourceRefused.of(f"commit {sha}", f"is malformed: {_said(error)}") from None


def info_of(sha: str, commit: Commit) -> CommitInfo:
    """Return what history shows: first line and author, escaped and capped at 200 characters, and the committer's time."""
    subject = (commit.message or b"").lstrip().split(b"\n", 1)[0].rstrip()
    return CommitInfo(sha, _text(subject), _text(commit.author), int(commit.commit_time))


def _text(raw: bytes) -> str:
    return printable(raw[: 4 * MAX_TEXT].decode(errors="replace"), MAX_TEXT)


def read_tree(data: bytes, path: str) -> Children:
    """Parse and check one tree object. `path`: its place, for errors. Raises SourceRefused: any entry breaks a rule."""
    from dulwich.errors import ObjectFormatException  # noqa: PLC0415 - a directory is read without dulwich
    from dulwich.object_format import SHA1  # noqa: PLC0415 - the same
    from dulwich.objects import Tree, parse_tree  # noqa: PLC0415 - the same

    try:
        tree = Tree.from_string(data)
        tree.check()
        entries = list(parse_tree(data, SHA1.oid_length, strict=True))
    except (ObjectFormatException, ValueError, AssertionError) as error:
        raise refused(path, f"git tree is malformed: {_said(error)}") from None
    return children_of(((raw, mode, oid.decode()) for raw, mode, oid in entries), path)


def _said(error: Exception) -> str:
    return quoted(str(error) or type(error).__name__, 300)
