"""Brings what a pull request's merge would make into memory: the branch's tip, the head, and the tree of both."""

from __future__ import annotations

from dataclasses import dataclass

from handler.config.git_settings import Revision
from handler.feedback.git_hosts import GitHostApi
from handler.model.errors import GitUnavailable, RefNotFound, SourceRefused
from handler.model.pull_request import PullRequest
from handler.model.refs import Head, is_commit_id
from handler.model.tree import Tree
from handler.source.fetched_tree import FetchedTree
from handler.source.git_host import GitHost
from handler.source.merged_tree import merge


@dataclass(frozen=True, slots=True)
class MergeResult:
    """`base`: the branch's tip, with its tree `now`; `then`: the tree after the merge. `parted`: the commit at which both part."""

    base: str
    parted: str
    now: Tree
    then: Tree

    @property
    def diverged(self) -> bool:
        """Whether the branch has moved on since the pull request began."""
        return self.parted != self.base


def merge_result(host: GitHost, api: GitHostApi, asked: PullRequest, path: str) -> MergeResult:
    """Return the merge of a pull request into its branch as it is now. `path`: whose files are wanted first.

    Raises SourceRefused: which files conflict, or may; RefNotFound: the branch or a commit is gone; and what the host raises.
    """
    base = host.head(Revision(branch=asked.base)).commit
    parted = api.merge_base(base, asked.head)
    if not parted:
        raise SourceRefused.of(asked.base, f"has no commit in common with {asked.head[:12]}", fix="base the branch on it")
    if not is_commit_id(parted):
        raise GitUnavailable.of(subject_of(asked), f"the host names {parted[:60]!a} as the commit at which base and head part")
    now, head = host.fetch(base, path), _head(host, asked, path)
    if parted == base:
        return MergeResult(base, parted, now, head)
    if _is_crossed(host, parted, base, asked.head):
        seen = f"this branch and {asked.base} have merged each other, so that what both have in common isn't one commit"
        raise SourceRefused.of(f"merge into {asked.base}", seen, fix=f"merge {asked.base} into this branch, or rebase it")
    made = merge(now, head, host.fetch(parted, path))
    if made.conflicts:
        shown = ", ".join(made.conflicts[:10]) + (f" and {len(made.conflicts) - 10} more" if len(made.conflicts) > 10 else "")
        seen = f"both {asked.base} and this branch have changed {shown}, and what a merge makes of that isn't certain"
        raise SourceRefused.of(f"merge into {asked.base}", seen, fix=f"merge {asked.base} into this branch, or rebase it")
    return MergeResult(base, parted, now, made)


def subject_of(asked: PullRequest) -> str:
    """Return how messages name a pull request."""
    return f"pull request {asked.number}"


def _is_crossed(host: GitHost, parted: str, base: str, head: str) -> bool:
    """Whether base and head have more commits in common than lead to `parted`: then git merges by several, and `parted` is one of them."""
    mine = host.between(parted, head)
    if all(len(parents) < 2 for parents in mine.values()):
        return False  # each of them leads to `parted` alone
    return not mine.keys().isdisjoint(host.between(parted, base))


def _head(host: GitHost, asked: PullRequest, path: str) -> FetchedTree:
    try:
        return host.fetch(asked.head, path)
    except RefNotFound as error:
        seen = f"the host doesn't serve its head, {asked.head[:12]}: {error.problems[0].message}"
        raise RefNotFound.of(subject_of(asked), seen, fix="push it into the repository itself") from None


class ShownCommit:
    """One tree as a source of commits, for a preparer: whatever is asked for is that tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def head(self, revision: Revision, since: float = 0.0) -> Head:  # noqa: ARG002 - the port's arguments
        """Return the commit that the tree goes by."""
        return Head(self._tree.commit.sha)

    def fetch(self, sha: str, path: str = "") -> Tree:  # noqa: ARG002 - the port's arguments
        """Return the tree."""
        return self._tree

    def recheck(self, sha: str, path: str = "") -> None:
        """Do nothing: what isn't merged yet is signed by no key that counts."""
