"""`${name#pattern}`, `##`, `%`, `%%`: the shortest or longest part at a text's beginning or end that a pattern matches. Pure.

Law: in time linear in the text. The pattern is a set of states that each character moves on, all at once, as bits of one number; Flux tries
each prefix anew. The results are Flux' own, its quirks included: for an end both text and pattern are turned around, which turns a class
(`[0-9]`) into something else, and a pattern that can't be read leaves the text as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from handler.render.variables.expression_budget import ExpressionBudget

MAX_PATTERN = 1_000
_WORD = 64  # states that one step of a character moves on


@dataclass(frozen=True, slots=True)
class _Element:
    """One character of a pattern. `ranges`: those it may be in, none: any character; `negated`: or may not be in."""

    ranges: tuple[tuple[str, str], ...] = ()
    negated: bool = False

    def matches(self, char: str) -> bool:
        return not self.ranges or any(low <= char <= high for low, high in self.ranges) is not self.negated


@dataclass(slots=True)
class _Pattern:
    """A pattern without its stars. `loops`: a bit for each state in which a star takes any character."""

    elements: list[_Element] = field(default_factory=list)
    loops: int = 0
    moves: dict[str, int] = field(default_factory=dict)

    def step(self, states: int, char: str) -> int:
        if char not in self.moves:
            self.moves[char] = sum(1 << number for number, each in enumerate(self.elements) if each.matches(char))
        return ((states & self.moves[char]) << 1) | (states & self.loops)


def trimmed(operator: str, text: str, pattern: str, budget: ExpressionBudget) -> str:
    """Return a text without what a pattern matches. `operator`: `#`, `##`, `%` or `%%`. Raises ExpressionRefused: it is too much work."""
    if operator[0] == "%":
        return trimmed(operator.replace("%", "#"), text[::-1], pattern[::-1], budget)[::-1]
    budget.bound("pattern", len(pattern), MAX_PATTERN)
    budget.work((len(text) + len(pattern)) * (1 + len(pattern) // _WORD) + len(set(text)) * len(pattern))
    read = _read(pattern)
    return text[_matched(read, text, longest=operator == "##") :] if read else text


def _matched(pattern: _Pattern, text: str, *, longest: bool) -> int:
    """Return how many characters are matched; the empty beginning counts as no match."""
    states, found, whole = 1, 0, 1 << len(pattern.elements)
    for number, char in enumerate(text, 1):
        states = pattern.step(states, char)
        if states & whole:
            found = number
            if not longest:
                return found
        if not states:
            return found
    return found


def _read(pattern: str) -> _Pattern | None:
    """Return a pattern as Go's path.Match reads it, or None: it has a class that isn't closed, or ends with a backslash."""
    read, at = _Pattern(), 0
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            read.loops |= 1 << len(read.elements)
            at += 1
            continue
        if char == "[":
            found = _class(pattern, at + 1)
            if found is None:
                return None
            element, at = found
        else:
            at += char == "\\"
            if at == len(pattern):
                return None
            element, at = _Element() if char == "?" else _Element(((pattern[at], pattern[at]),)), at + 1
        read.elements.append(element)
    return read


def _class(pattern: str, at: int) -> tuple[_Element, int] | None:
    negated = pattern[at : at + 1] == "^"
    at += negated
    ranges: list[tuple[str, str]] = []
    while not (ranges and pattern[at] == "]"):
        low = _in_class(pattern, at)
        if low is None:
            return None
        high = _in_class(pattern, low[1] + 1) if pattern[low[1]] == "-" else low
        if high is None:
            return None
        ranges.append((low[0], high[0]))
        at = high[1]
    return _Element(tuple(ranges), negated), at + 1


def _in_class(pattern: str, at: int) -> tuple[str, int] | None:
    """Return one character of a class and where the next stands; something must follow."""
    if at >= len(pattern) or pattern[at] in "-]":
        return None
    at += pattern[at] == "\\"
    return (pattern[at], at + 1) if at + 1 < len(pattern) else None
