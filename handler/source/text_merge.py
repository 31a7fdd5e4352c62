"""Merges two changed versions of one text by lines, as `git merge-file` does (diff3; git-merge-file(1)). Pure.

Law: rather no merge than a guess: where changes touch, or are the same on both sides, how git sees them isn't certain. What is merged here
is what git merges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass

LARGEST = 1 << 20
"""Bytes of a version; a larger file that both sides have changed is left to git."""
STEPS = 300_000
"""Comparisons of lines of two versions, about a tenth of a second; what takes more, some 750 changed lines, is left to git, too."""
ALL_STEPS = 2_000_000
"""Comparisons and lines of all files of a merge, some two seconds."""
ALL_BYTES = 32 << 20
"""What a merge fetches: it stays in trees that others share, which may hold so much and no more."""
_Block = tuple[int, int, int]
"""Lines that are the same: from where in the original, from where in the changed version, how many."""
_Change = tuple[int, int, Sequence[bytes]]
"""Which lines of the original, from and to, are replaced, and by what."""


@dataclass(slots=True)
class MergeBudget:
    """What all files of one merge may take together: many files of a hostile pull request mustn't take more than a large one."""

    left: int = ALL_STEPS
    content: int = ALL_BYTES

    def take(self, steps: int) -> bool:
        """Whether there is room for so many steps, which are taken; without room nothing is left for others either."""
        self.left -= steps
        return self.left >= 0

    def hold(self, count: int) -> bool:
        """Whether there was room for so many fetched bytes; without room nothing more is to be fetched."""
        self.content -= count
        return self.content >= 0


def merged(original: bytes, one: bytes, other: bytes, budget: MergeBudget) -> bytes | None:
    """Return a text with the changes of both; None: they conflict, or may; or it is no text, a large one, or beyond the budget."""
    if one == other:
        return one
    versions = (original, one, other)
    if any(b"\0" in each or len(each) > LARGEST for each in versions):
        return None
    if not budget.take(sum(each.count(b"\n") + 1 for each in versions)):
        return None
    lines, mine, yours = (_lines(each) for each in versions)
    ours, theirs = (_changes(lines, changed, budget) for changed in (mine, yours))
    changes = None if ours is None or theirs is None else _joined(lines, _anchors(lines, mine, yours), ours, theirs)
    if changes is None:
        return None
    found, at = list[bytes](), 0
    for start, end, new in changes:
        found += [*lines[at:start], *new]
        at = end
    return b"".join([*found, *lines[at:]])


def _lines(text: bytes) -> list[bytes]:
    *lines, rest = text.split(b"\n")  # not `splitlines`: to git a lone CR ends no line
    return [line + b"\n" for line in lines] + ([rest] if rest else [])


def _anchors(*versions: Sequence[bytes]) -> frozenset[bytes]:
    """Return the lines that are there once in each version: every way to compare them sees these as the same."""
    return frozenset.intersection(*(frozenset(line for line, count in Counter(lines).items() if count == 1) for lines in versions))


def _changes(original: Sequence[bytes], changed: Sequence[bytes], budget: MergeBudget) -> list[_Change] | None:
    """Return what was replaced, the first first; None: to find it takes too many steps."""
    shorter = min(len(original), len(changed))
    front = next((at for at in range(shorter) if original[at] != changed[at]), shorter)
    back = next((at for at in range(shorter - front) if original[-1 - at] != changed[-1 - at]), shorter - front)
    inner, outer = original[front : len(original) - back], changed[front : len(changed) - back]
    ends = _furthest(inner, outer, budget)
    if ends is None:
        return None
    found, at, there = list[_Change](), front, front
    for first, second, count in (*_same(ends, len(inner), len(outer)), (len(inner), len(outer), back)):
        if (at, there) != (first + front, second + front):
            found.append((at, first + front, changed[there : second + front]))
        at, there = first + front + count, second + front + count
    return found


def _furthest(original: Sequence[bytes], changed: Sequence[bytes], budget: MergeBudget) -> list[list[int]] | None:
    """Return how far each diagonal gets with 0, 1, 2… edits (Myers, 1986, as git compares); None: that takes too many steps."""
    ends, last = list[list[int]](), len(original) - len(changed)  # of n edits, diagonal k stands at (k + n) / 2
    least = max(budget.left - STEPS, 0)
    while budget.left > least:
        edits, row, steps = len(ends), list[int](), 0
        for diagonal in range(-edits, edits + 1, 2):
            at = start = _begun(ends[-1], edits, diagonal)[0] if ends else 0
            while at < len(original) and at - diagonal < len(changed) and original[at] == changed[at - diagonal]:
                at += 1
            steps += 1 + at - start
            row.append(at)
        ends.append(row)
        budget.take(steps)
        if abs(last) <= edits and (last + edits) % 2 == 0 and row[(last + edits) // 2] >= len(original):
            return ends
    return None


def _begun(before: Sequence[int], edits: int, diagonal: int) -> tuple[int, int]:
    """Return where a diagonal begins with one edit more than `before`, and on which side the neighbour is that it comes from."""
    place = (diagonal + edits) // 2
    added = before[place] if place < edits else -1
    dropped = before[place - 1] + 1 if place > 0 else -1
    return (added, 1) if added >= dropped else (dropped, -1)


def _same(ends: Sequence[Sequence[int]], first: int, second: int) -> list[_Block]:
    """Return the lines that stay on the way to an end, the first first."""
    found, at, diagonal = list[_Block](), first, first - second
    for edits in range(len(ends) - 1, -1, -1):
        start, side = _begun(ends[edits - 1], edits, diagonal) if edits else (0, 0)
        if at > start:
            found.append((start, start - diagonal, at - start))
        diagonal += side
        at = start if side > 0 else start - 1
    return found[::-1]


def _joined(original: Sequence[bytes], anchors: Container[bytes], ours: list[_Change], theirs: list[_Change]) -> list[_Change] | None:
    """Return all changes in their order; None: two of them touch, or might as git sees them."""
    spans = _Spans(original, anchors)
    found = sorted([(*spans.of(change), True) for change in ours] + [(*spans.of(change), False) for change in theirs])
    reach = {True: -1, False: -1}  # how far each side's changes go that begin before
    for first, last, is_ours in found:
        if first <= reach[not is_ours]:
            return None
        reach[is_ours] = max(reach[is_ours], last)
    return sorted([*ours, *theirs], key=lambda each: (each[0], each[1]))


class _Spans:
    """Between which lines a change may be seen: up to the next anchors, for among other lines it might be any."""

    def __init__(self, original: Sequence[bytes], anchors: Container[bytes]) -> None:
        count = len(original)
        self._after, self._before = [count] * (count + 1), [0] * (count + 1)
        for at in range(count - 1, -1, -1):
            self._after[at] = at if original[at] in anchors else self._after[at + 1]
        for at in range(1, count + 1):
            self._before[at] = at if original[at - 1] in anchors else self._before[at - 1]

    def of(self, change: _Change) -> tuple[int, int]:
        """Return from and to which line."""
        return self._before[change[0]], self._after[change[1]]
