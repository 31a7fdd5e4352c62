"""Merges two changed versions of one text by lines, as `git merge-file` does (diff3; git-merge-file(1)). Pure.

Law: rather no merge than a guess: where changes touch, or are the same on both sides, how git sees them isn't certain. What is merged here
is what git merges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from difflib import SequenceMatcher

LARGEST = 1 << 20
"""Bytes of a version; a larger file that both sides have changed is left to git."""
_Change = tuple[int, int, Sequence[bytes]]
"""Which lines of the original, from and to, are replaced, and by what."""


def merged(original: bytes, one: bytes, other: bytes) -> bytes | None:
    """Return a text with the changes of both; None: they conflict, or may; or it is no text, or a large one."""
    if one == other:
        return one
    if any(b"\0" in each or len(each) > LARGEST for each in (original, one, other)):
        return None
    lines, mine, yours = (each.splitlines(keepends=True) for each in (original, one, other))
    changes = _joined(lines, _anchors(lines, mine, yours), list(_changes(lines, mine)), list(_changes(lines, yours)))
    if changes is None:
        return None
    found, at = list[bytes](), 0
    for start, end, new in changes:
        found += [*lines[at:start], *new]
        at = end
    return b"".join([*found, *lines[at:]])


def _anchors(*versions: Sequence[bytes]) -> frozenset[bytes]:
    """Return the lines that are there once in each version: every way to compare them sees these as the same."""
    return frozenset.intersection(*(frozenset(line for line, count in Counter(lines).items() if count == 1) for lines in versions))


def _changes(original: Sequence[bytes], changed: Sequence[bytes]) -> Iterator[_Change]:
    """Yield what was replaced, the first first."""
    matcher = SequenceMatcher(None, original, changed, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag != "equal":
            yield start, end, changed[first:last]


def _joined(original: Sequence[bytes], anchors: Container[bytes], ours: list[_Change], theirs: list[_Change]) -> list[_Change] | None:
    """Return all changes in their order; None: two of them touch, or might as git sees them."""
    spans = [_span(original, anchors, change) for change in theirs]
    for mine in ours:
        first, last = _span(original, anchors, mine)
        if any(first <= end and start <= last for start, end in spans):
            return None
    return sorted([*ours, *theirs], key=lambda each: (each[0], each[1]))


def _span(original: Sequence[bytes], anchors: Container[bytes], change: _Change) -> tuple[int, int]:
    """Return between which lines a change may be seen: up to the next anchors, for among other lines it might be any."""
    first, last, _ = change
    while last < len(original) and original[last] not in anchors:
        last += 1
    while first > 0 and original[first - 1] not in anchors:
        first -= 1
    return first, last
