"""The last commits of git hosts and the fetches under way, one at a time: callers of one commit share a fetch and its error."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from handler.model.errors import GitUnavailable
from handler.model.singleflight import Flight
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
        self._flights: dict[str, Flight[FetchedTree]] = {}
        self._lock = threading.Lock()
        self._turn = threading.Lock()

    def get(self, sha: str, path: str) -> FetchedTree:
        """Return a commit: kept, under way or fetched now. Raises GitUnavailable: the host is busy for too long, and the fetch's errors."""
        with self._lock:
            kept, flight = self._kept.get((self._owner, sha)), self._flights.get(sha)
            if kept is not None:
                return kept
            mine = flight is None
            if flight is None:
                flight = self._flights[sha] = Flight()
        return self._fly(flight, sha, path) if mine else flight.wait(f"commit {sha}")

    def drop(self, sha: str) -> None:
        """Fetch a commit anew next time."""
        self._kept.drop((self._owner, sha))

    def trim(self) -> None:
        """Let commits go that no longer fit: they grow while their trees are listed."""
        self._kept.trim()

    def _fly(self, flight: Flight[FetchedTree], sha: str, path: str) -> FetchedTree:
        try:
            return flight.fly(lambda: self._in_turn(sha, path))
        finally:
            with self._lock:
                if flight.answer is not None:
                    self._kept.put((self._owner, sha), flight.answer)
                del self._flights[sha]
            flight.landed.set()

    def _in_turn(self, sha: str, path: str) -> FetchedTree:
        if not self._turn.acquire(timeout=self._patience):
            raise GitUnavailable.of(self._subject, f"the host is busy with another fetch, for more than {self._patience:g} s")
        try:
            return self._fetch(sha, path)
        finally:
            self._turn.release()
