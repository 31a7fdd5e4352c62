"""A git host in memory, behind the port that `handler.engine.planner.desired.CommitSource` is: commits, one branch, and what can be wrong
with a host."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from handler.config.git_settings import Revision
from handler.model.errors import GitUnavailable, RefNotFound
from handler.model.refs import Head
from handler.model.tree import CommitInfo, Tree
from handler.source.fetch_cache import HeadCache
from tests.fakes.source_tree import FakeTree

Files = Mapping[str, str]


@dataclass
class GitHost:
    """`head`: what the branch is; `shown`: what it says (behind while it lags). `heads`: all it ever showed, in order.

    `links`: the symbolic links of the trees that are looked at from now on.
    """

    commits: dict[str, Files] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    head: str = ""
    shown: str = ""
    lags: bool = False
    down: bool = False
    lost: set[str] = field(default_factory=set)
    heads: list[str] = field(default_factory=list)
    links: Mapping[str, str] = field(default_factory=dict)
    _trees: dict[str, FakeTree] = field(default_factory=dict)

    def commit(self, files: Files) -> str:
        """Add a commit on top of the head; every commit has an id of its own."""
        text = json.dumps([self.head, len(self.commits), dict(files)])
        sha = hashlib.sha1(text.encode()).hexdigest()
        self.commits[sha], self.parents[sha] = dict(files), self.head
        return sha

    def push(self, sha: str) -> None:
        """Move the branch, forwards or by force."""
        self.head = sha
        self.lost.discard(sha)
        if not self.lags:
            self.show()

    def tree(self, sha: str) -> Tree:
        """Return a commit's tree."""
        if sha not in self._trees:
            self._trees[sha] = FakeTree(self.commits[sha], self.links)
            self._trees[sha].commit = CommitInfo(sha, "A change", "An Author", 0)
        return self._trees[sha]

    def show(self) -> None:
        """Show every worker where the branch is."""
        self.lags = False
        if self.shown != self.head:
            self.shown = self.head
            self.heads.append(self.head)


class HostSource:
    """One worker's way to the host. `meet` is called with what is asked, and raises what goes wrong on the way."""

    def __init__(self, host: GitHost, meet: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.host = host
        self._meet = meet
        self._looks = HeadCache(self._asked, clock)

    def head(self, revision: Revision, since: float = math.inf) -> Head:
        return self._looks.get(revision, since)

    def fetch(self, sha: str, path: str = "") -> Tree:
        self._meet(f"fetch {sha}")
        self._up()
        if sha not in self.host.commits or sha in self.host.lost:
            raise RefNotFound.of(sha, "the host no longer has it")
        return self.host.tree(sha)

    def recheck(self, sha: str, path: str = "") -> None:
        """Nothing here is signed."""

    def proves(self, revision: Revision, commit: str, head: str = "") -> bool:
        """Whether a revision leads to a commit."""
        return self.reaches(head or self.head(revision).commit, commit)

    def reaches(self, head: str, commit: str) -> bool:
        self._meet(f"ancestry {head} {commit}")
        self._up()
        for sha in (commit, head):
            if sha not in self.host.commits or sha in self.host.lost:
                raise RefNotFound.of(sha, "the host no longer has it")
        while head and head != commit:
            head = self.host.parents[head]
        return head == commit

    def _asked(self, revision: Revision) -> Head:
        self._meet(f"head {revision.ref}")
        self._up()
        return Head(self.host.shown, revision.ref, self.host.shown)

    def _up(self) -> None:
        if self.host.down:
            raise GitUnavailable.of("git host", "doesn't answer")
