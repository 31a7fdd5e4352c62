"""Regular expressions of key transformations: RE2's, evaluated by Python, whose time is bounded by what may be written. Pure.

Users of a cluster choose the keys, and RE2 takes time that is linear in them. Python's engine doesn't: so nothing that repeats without a
bound may stand in what does, and few may stand beside each other. No engine of RE2 is among the dependencies for this alone.
"""

from __future__ import annotations

import re

MOST = 4  # parts of one expression that repeat without a bound: keys have at most 317 characters
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?(?:P?<\w+>|[a-z-]*:)?|[()]|(?P<many>\*|\+|\{\d+,\})|.", re.DOTALL)


def regex_fault(text: str) -> str:
    """Return what is wrong with an expression; empty: nothing."""
    try:
        re.compile(text, re.ASCII)
    except re.error as error:
        return f"can't be read: {error}"
    if re.search(r"\\[1-9]|\(\?<?[=!]|\(\?P=|\(\?\(", re.sub(r"\\\\", "", text)):
        return "has look-around or a back-reference, which RE2 lacks"
    return _time_fault(text)


def _time_fault(text: str) -> str:
    """Return why an expression may take long: repetition within repetition, or too many of them."""
    inside = [False]  # of each open group, whether something in it repeats
    closed, count = False, 0  # what the last token was: a group in which something repeats
    for token in _TOKEN.finditer(text):
        if token["many"]:
            count += 1
            if closed:
                return "repeats without a bound what does so itself; write it flat, as [a-z0-9-]*"
            inside[-1] = True
        closed = False
        if token[0].startswith("("):
            inside.append(False)
        elif token[0] == ")" and len(inside) > 1:
            closed = inside.pop()
            inside[-1] = inside[-1] or closed
    return f"repeats without a bound {count} times; {MOST} times is the most" if count > MOST else ""
