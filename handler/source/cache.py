"""The last commits fetched, bounded by the bytes they hold: ticks and sibling targets of one commit fetch it once."""

from __future__ import annotations

import threading
from collections import OrderedDict

from handler.source.tree import FetchedTree


class TreeCache:
    """Least recently used goes first. A tree larger than the bound isn't kept at all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._trees: OrderedDict[str, FetchedTree] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, sha: str) -> FetchedTree | None:
        """Return the tree of a commit, or None."""
        with self._lock:
            tree = self._trees.get(sha)
            if tree:
                self._trees.move_to_end(sha)
            return tree

    def put(self, sha: str, tree: FetchedTree) -> None:
        """Keep a tree; others leave until all fit."""
        with self._lock:
            self._trees[sha] = tree
            self._trees.move_to_end(sha)
        self.trim()

    def drop(self, sha: str) -> None:
        """Forget a commit."""
        with self._lock:
            self._trees.pop(sha, None)

    def trim(self) -> None:
        """Let the least recently used go until all fit, by the sizes they have now."""
        with self._lock:
            while self._trees and sum(tree.size for tree in self._trees.values()) > self._most:
                self._trees.popitem(last=False)
