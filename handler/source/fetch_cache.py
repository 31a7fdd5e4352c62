"""The heads and last commits of git hosts, and the fetches under way, one at a time: callers of one commit share a fetch and its error."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from handler.config.git_settings import Revision
from handler.model.errors import GitUnavailable
from handler.model.refs import Head
from handler.model.singleflight import SingleFlight
from handler.source.fetched_tree import FetchedTree

KEPT = 8  # commits of one repository: many small ones take more memory than the bytes that they hold say


class TreeCache:
    """The last commits of several repositories, at most `most` bytes. The least recently used goes first; a larger tree isn't kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._trees: OrderedDict[tuple[Hashable, str], FetchedTree] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, commit: tuple[Hashable, str]) -> FetchedTree | None:
        """Return the tree of a commit, named by its repository and id, or None."""
        with self._lock:
            tree = self._trees.get(commit)
            if tree:
                self._trees.move_to_end(commit)
            return tree

    def put(self, commit: tuple[Hashable, str], tree: FetchedTree) -> None:
        """Keep a tree; others leave until all fit, and few are of one repository."""
        with self._lock:
            self._trees[commit] = tree
            self._trees.move_to_end(commit)
            for older in [each for each in self._trees if each[0] == commit[0]][:-KEPT]:
                del self._trees[older]
        self.trim()

    def drop(self, commit: tuple[Hashable, str]) -> None:
        """Forget a commit."""
        with self._lock:
            self._trees.pop(commit, None)

    def trim(self) -> None:
        """Let the least recently used go until all fit, by the sizes they have now."""
        with self._lock:
            while self._trees and sum(tree.size for tree in self._trees.values()) > self._most:
                self._trees.popitem(last=False)


Fetch = Callable[[str, str], FetchedTree]


class FetchCache:
    """Fetches commits, at most one at a time, and keeps the last ones whatever is thought of them. Safe to share between threads."""

    def __init__(self, fetch: Fetch, subject: str, patience: float, kept: TreeCache) -> None:
        """`fetch` brings a commit with what listing a path needs; `subject`: of errors; `patience`: seconds to wait for other fetches."""
        self._fetch = fetch
        self._subject = subject
        self._patience = patience
        self._kept = kept
        self._owner = object()
        self._flights: SingleFlight[str, FetchedTree] = SingleFlight()
        self._turn = threading.Lock()

    def get(self, sha: str, path: str) -> FetchedTree:
        """Return a commit: kept, under way or fetched now. Raises GitUnavailable: the host is busy for too long, and the fetch's errors."""
        return self._flights.do(sha, lambda: self._kept_or_fetched(sha, path), lambda: GitUnavailable.of(f"commit {sha}", MISTAKEN))

    def drop(self, sha: str) -> None:
        """Fetch a commit anew next time."""
        self._kept.drop((self._owner, sha))

    def trim(self) -> None:
        """Let commits go that no longer fit: they grow while their trees are listed."""
        self._kept.trim()

    def _kept_or_fetched(self, sha: str, path: str) -> FetchedTree:
        tree = self._kept.get((self._owner, sha))
        if tree is not None:
            return tree
        if not self._turn.acquire(timeout=self._patience):
            raise GitUnavailable.of(self._subject, f"the host is busy with another fetch, for more than {self._patience:g} s")
        try:
            tree = self._fetch(sha, path)
        finally:
            self._turn.release()
        self._kept.put((self._owner, sha), tree)
        return tree


MISTAKEN = "another run asked the host for it, and failed unexpectedly; see the log"


class HeadCache:
    """The last answer to each question, or the question under way. Safe to share between threads."""

    def __init__(self, ask: Callable[[Revision], Head], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._flights: SingleFlight[tuple[str, str], Head] = SingleFlight(clock, kept=True)

    def get(self, revision: Revision, since: float) -> Head:
        """Return what a revision names, by an answer of monotonic second `since` or later; infinity: ask now. Raises AnnealError."""
        key = revision.ref, revision.semver
        return self._flights.do(key, lambda: self._ask(revision), lambda: GitUnavailable.of(str(revision), MISTAKEN), since)
