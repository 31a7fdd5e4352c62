"""A commit object -> what history shows of it, and the tree it names."""

from __future__ import annotations

from collections.abc import Callable

from dulwich.errors import FileFormatException
from dulwich.objects import Commit

from handler.model.errors import SourceRefused
from handler.model.tree import CommitInfo, printable

MAX_TEXT = 200
Accept = Callable[[str, bytes, str], None]
"""Judges (commit id, raw commit object, id of its tree) before any tree is read; raises CommitUnverified."""


def accept_any(sha: str, commit: bytes, tree: str) -> None:
    """Take any commit: whose signature counts isn't asked."""


def read_commit(sha: str, data: bytes) -> tuple[CommitInfo, str]:
    """Parse a commit.

    Returns: what history shows, and the hex id of its tree.

    Raises:
        SourceRefused: it isn't well formed.
    """
    try:
        commit = Commit.from_string(data)
        commit.check()
        return info_of(sha, commit), commit.tree.decode()
    except (FileFormatException, ValueError, AssertionError, IndexError) as error:
        raise SourceRefused.of(f"commit {sha}", f"is malformed: {printable(str(error) or type(error).__name__)}") from None


def info_of(sha: str, commit: Commit) -> CommitInfo:
    """Return what history shows: first line and author, escaped and capped at 200 characters, and the committer's time."""
    subject = (commit.message or b"").lstrip().split(b"\n", 1)[0].rstrip()
    return CommitInfo(sha, _text(subject), _text(commit.author), int(commit.commit_time))


def _text(raw: bytes) -> str:
    return printable(raw[: 4 * MAX_TEXT].decode(errors="replace"), MAX_TEXT)
