"""Whether one commit leads to another by parents: judged on the commits between them, which one request brings.

A host that knows what is here already (`have` of gitprotocol-pack(5)) sends what a commit leads to, without that and all before it. No way
from the one commit to the other has one before the other on it, so all of each way is sent. Law: ids are computed from what was sent, so a
host can hide a way, and never make one up; what isn't shown is no way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from handler.source.git_objects import COMMIT, Objects

_KEPT = 1000  # answers


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
    """Answers of `ask` (head, commit), which raises AnnealError; the last ones are kept. Safe to share between threads."""

    def __init__(self, ask: Callable[[str, str], bool]) -> None:
        self._ask = ask
        self._known: dict[tuple[str, str], bool] = {}
        self._lock = threading.Lock()

    def get(self, head: str, commit: str) -> bool:
        """Return whether `head` leads to `commit`."""
        key = head, commit
        with self._lock:
            known = self._known.pop(key, None)
        found = self._ask(*key) if known is None else known
        with self._lock:
            self._known[key] = found  # the newest last
            while len(self._known) > _KEPT:
                self._known.pop(next(iter(self._known)))
        return found
