"""Regular expressions of key transformations: RE2's, evaluated by Python, whose time is bounded by what may be written. Pure.

Users of a cluster choose the keys, and RE2 takes time that is linear in them. Python's engine doesn't: it tries each way to match. So what
repeats must match in one way alone, and few may vary beside each other. No engine of RE2 is among the dependencies for this alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MOST = 4
"""Parts of one expression that repeat without a bound, or within a wide one: keys have at most 317 characters."""
CHOICES = 256
"""Ways to choose among all that is optional, repeats within narrow bounds, or has alternatives."""
_WIDE = 16
_SET = r"\[\^?\]?(?:\\.|[^\]\\])*\]"
_MANY = r"[*+?]|\{\d*(?:,\d*)?\}"
_TOKEN = re.compile(
    rf"(?P<flags>\(\?[ims-]+\))|(?P<open>\((?:\?(?:P?<\w+>|[ims-]*:))?)|(?P<set>{_SET})|(?P<many>{_MANY})\??|(?P<plain>\\.|.)", re.DOTALL
)
_LACKS = "has look-around, a back-reference or another group that RE2 lacks"


@dataclass(slots=True)
class _Group:
    """An open group. `varies`: it may match one text in several ways; `firsts`: how each of its alternatives begins, empty: not plainly."""

    varies: bool = False
    firsts: list[str] = field(default_factory=lambda: [""])
    begun: bool = False

    def begin(self, text: str) -> None:
        """Take a part; the first of an alternative tells it from the others."""
        if not self.begun:
            self.firsts[-1], self.begun = text.lower(), True

    def alternatives(self) -> int:
        """Return how many must be tried one after the other: 1 where the first character says which it is."""
        return 1 if len(set(self.firsts)) == len(self.firsts) and ("" not in self.firsts or len(self.firsts) == 1) else len(self.firsts)


def regex_fault(text: str) -> str:
    """Return what is wrong with an expression; empty: nothing."""
    tokens = list(_TOKEN.finditer(text))
    if wrong := _syntax_fault(tokens):
        return wrong
    try:
        re.compile(text, re.ASCII)
    except re.error as error:
        return f"can't be read: {error}"
    return _time_fault(tokens)


def _syntax_fault(tokens: list[re.Match[str]]) -> str:
    """Return what Python would read otherwise than RE2, or RE2 not at all."""
    for before, token in zip([None, *tokens], tokens, strict=False):
        unknown_group = before and before[0] == "(" and (token["many"] or "")[:1] == "?"
        if unknown_group or (token["plain"] and re.fullmatch(r"\\[1-9]", token[0])):
            return _LACKS
        if token["set"] and "[:" in token[0]:
            return f"has a class by its name, {token[0]}], which isn't known here"
        if token["plain"] and re.fullmatch(r"\\[ZuUN]", token[0]):
            return f"has {token[0]}, which RE2 lacks"
        if token["many"] and (token[0].startswith("{,") or (before and before["many"])):
            return f"repeats with {token[0]} what RE2 doesn't"
    return ""


def _time_fault(tokens: list[re.Match[str]]) -> str:
    """Return why an expression may take long: repetition of what varies, or too much that varies."""
    inside = [_Group()]
    closed: _Group | None = None  # what the last token was the end of
    wide, choices = 0, 1
    for token in tokens:
        if many := token["many"]:
            ways = _ways(many)
            if closed and closed.varies and many != "?":
                return "repeats what may match in several ways itself; write it flat, as [a-z0-9-]*"
            wide, choices = wide + (ways > _WIDE), choices * (1 if ways > _WIDE else ways)
            inside[-1].varies = inside[-1].varies or ways > 1
        closed = None
        if token["open"]:
            inside[-1].begin("")
            inside.append(_Group())
        elif token[0] == ")" and len(inside) > 1:
            closed = inside.pop()
            closed.varies = closed.varies or closed.alternatives() > 1
            choices *= closed.alternatives()
            inside[-1].varies = inside[-1].varies or closed.varies
        elif token[0] == "|":
            inside[-1].firsts.append("")
            inside[-1].begun = False
        elif not (many or token["flags"]):
            inside[-1].begin(token[0] if token["plain"] and token[0] != "." else "")
    if wide > MOST:
        return f"repeats without a bound {wide} times; {MOST} times is the most"
    choices *= inside[0].alternatives()
    return f"may match in {choices} ways beside what repeats without a bound; {CHOICES} is the most" if choices > CHOICES else ""


def _ways(many: str) -> int:
    """Return how many counts a quantifier allows."""
    if many[0] != "{":
        return 2 if many == "?" else _WIDE + 1
    least, comma, most = many[1:-1].partition(",")
    if comma and not most:
        return _WIDE + 1
    return int(most) - int(least) + 1 if comma and int(most) >= int(least) else 1
