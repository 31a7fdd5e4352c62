"""The commit that a directory on disk lies in, and the tree that it records for it: read by dulwich, from the repository around it."""

from __future__ import annotations

import os
from pathlib import Path

from dulwich.errors import FileFormatException, NotGitRepository, NotTreeError
from dulwich.object_store import tree_lookup_path
from dulwich.objects import Commit, ObjectID
from dulwich.repo import Repo

from handler.model.tree import NO_COMMIT, CommitInfo
from handler.source.commit import info_of


def commit_of(directory: Path) -> tuple[CommitInfo, str]:
    """Return the last commit of the repository around a directory, and the id of the tree it records for that directory."""
    try:
        with Repo.discover(str(directory)) as repo:
            commit = repo[repo.head()]
            if not isinstance(commit, Commit):
                return NO_COMMIT, ""
            inside = directory.relative_to(Path(repo.path).resolve()).as_posix()
            return info_of(commit.id.decode(), commit), _recorded(repo, commit, inside)
    except (NotGitRepository, FileFormatException, KeyError, ValueError, OSError):
        return NO_COMMIT, ""


def _recorded(repo: Repo, commit: Commit, inside: str) -> str:
    """Return the id of the tree a commit has at a directory, or nothing."""
    oid: ObjectID = commit.tree
    try:
        if inside != ".":
            _, oid = tree_lookup_path(repo.object_store.__getitem__, oid, os.fsencode(inside))
        return oid.decode()
    except (KeyError, NotTreeError):
        return ""
