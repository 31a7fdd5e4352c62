"""Whether one commit leads to another by parents: judged on the commits between them, which one request brings.

A host that knows what is here already (`have` of gitprotocol-pack(5)) sends what a commit leads to, without that and all before it. No way
from the one commit to the other has one before the other on it, so all of each way is sent. Law: ids are computed from what was sent, so a
host can hide a way, and never make one up; what isn't shown is no way.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from handler.model.errors import GitUnavailable, RefNotFound, SourceRefused
from handler.model.singleflight import SingleFlight
from handler.source.fetch_cache import MISTAKEN
from handler.source.git_objects import COMMIT, Objects

T = TypeVar("T")

_KEPT = 1000  # answers
_REFUSED = 30.0


def leads_to(objects: Objects, head: str, commit: str) -> bool:
    """Whether parents lead from `head` to `commit`, over the commits among these objects."""
    todo, seen = [head], {head}
    while todo:
        kind, content = objects.get(todo.pop(), (0, b""))
        found = [*parents(content)] if kind == COMMIT else []
        if commit in found:
            return True
        new = [each for each in found if each not in seen]
        seen.update(new)
        todo += new
    return False


def parents(content: bytes) -> Iterator[str]:
    """Yield the ids that a commit object names as its parents."""
    for line in content.split(b"\n"):
        if line.startswith(b"parent "):
            yield line[7:].decode(errors="replace")
        elif not line.startswith(b"tree "):
            return


class KnownAncestry:
    """Answers of `ask` (head, commit), which raises AnnealError; the last ones are kept.

    That a commit isn't there, or that more lies between than is allowed, is kept for `_REFUSED` seconds. Safe to share between threads:
    those that ask the same at once share one question.
    """

    def __init__(self, ask: Callable[[str, str], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._known: dict[tuple[str, str], bool] = {}
        self._refused: dict[tuple[str, str], tuple[float, RefNotFound | SourceRefused]] = {}
        self._flights: SingleFlight[tuple[str, str], bool] = SingleFlight()
        self._lock = threading.Lock()

    def get(self, head: str, commit: str) -> bool:
        """Return whether `head` leads to `commit`."""
        key = head, commit
        return self._flights.do(key, lambda: self._found(key), lambda: GitUnavailable.of(f"commit {commit}", MISTAKEN))

    def _found(self, key: tuple[str, str]) -> bool:
        with self._lock:
            known = self._known.get(key)
        found = self._asked(key) if known is None else known
        self._keep(self._known, key, found)
        return found

    def _asked(self, key: tuple[str, str]) -> bool:
        with self._lock:
            since, error = self._refused.get(key, (-math.inf, None))
        if error and self._clock() - since <= _REFUSED:
            raise type(error)(*error.problems)
        try:
            return self._ask(*key)
        except (RefNotFound, SourceRefused) as refused:
            self._keep(self._refused, key, (self._clock(), refused))
            raise

    def _keep(self, kept: dict[tuple[str, str], T], key: tuple[str, str], found: T) -> None:
        with self._lock:
            kept.pop(key, None)
            kept[key] = found  # the newest last
            while len(kept) > _KEPT:
                kept.pop(next(iter(kept)))
