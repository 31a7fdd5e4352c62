"""Text of others (a server, an object's status, git, a tool, a record) as it is shown: it can't look like a way out of ours. Pure.

    quoted      a message within a sentence of ours           denied by “no team label”; a single word (a reason, a name) is bare
    block       what has lines by nature                      | Deployment/shop/api: 0 of 2 replicas are available
    printable   a cell, or a field, that holds nothing else   Raise the limit

Law: it never makes a line of its own, nor hides or turns one, and it is cut. Only a `block` has lines, and each begins with its mark.
"""

from __future__ import annotations

import re

LONGEST = 2000  # characters of a quotation
LINES = 20  # of a block
_INNER = str.maketrans(dict.fromkeys("“”„‟❝❞〝〞〟", '"'))
_WORD = re.compile(r"[\w.:/@-]{0,253}")
_GAP = re.compile(" {2,}")  # a terminal may break a line in a long one, so that what follows seems to begin a line


def escaped(text: str) -> str:
    """Return text as one line without what a terminal obeys, or what turns or hides text; nothing is cut."""
    return text if text.isprintable() else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable(text: str, limit: int = 300) -> str:
    """Return text fit for a log or a page: control characters, line breaks and bad bytes escaped, cut to `limit` characters."""
    shown = escaped(text[:limit])
    return shown if len(shown) <= limit and len(text) <= limit else shown[: limit - 1] + "…"


def quoted(text: str, limit: int = LONGEST) -> str:
    """Return a text of another as one line between marks that it can't end. What is sensitive in it was masked before."""
    if _WORD.fullmatch(text):
        return text[:limit]
    return f"“{printable(_GAP.sub(' ', text.strip()), limit).translate(_INNER)}”"


def block(text: str, most: int = LINES) -> list[str]:
    """Return a text of another as lines that begin with a mark, at most so many."""
    lines = [printable(line.rstrip(), LONGEST) for line in text.splitlines() if line.strip()]
    cut = lines if len(lines) <= most else [*lines[: most - 1], f"… and {len(lines) - most + 1} more lines"]
    return [f"| {line}" for line in cut]
