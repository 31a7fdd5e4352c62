"""The last commits fetched, bounded by the bytes they hold: ticks and sibling targets of one commit fetch it once.

One cache may serve many repositories, so that what is kept doesn't grow with their number; a commit is found by its own repository alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from handler.source.fetched_tree import FetchedTree


class TreeCache:
    """Least recently used goes first. A tree larger than the bound isn't kept at all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._trees: OrderedDict[Hashable, FetchedTree] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, commit: Hashable) -> FetchedTree | None:
        """Return the tree of a commit, named by its repository and id, or None."""
        with self._lock:
            tree = self._trees.get(commit)
            if tree:
                self._trees.move_to_end(commit)
            return tree

    def put(self, commit: Hashable, tree: FetchedTree) -> None:
        """Keep a tree; others leave until all fit."""
        with self._lock:
            self._trees[commit] = tree
            self._trees.move_to_end(commit)
        self.trim()

    def drop(self, commit: Hashable) -> None:
        """Forget a commit."""
        with self._lock:
            self._trees.pop(commit, None)

    def trim(self) -> None:
        """Let the least recently used go until all fit, by the sizes they have now."""
        with self._lock:
            while self._trees and sum(tree.size for tree in self._trees.values()) > self._most:
                self._trees.popitem(last=False)
