"""No riddle words in docstrings, comments, messages and pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from infra.house.code import comments
from infra.house.pages import PAGES, SPAN, name, unfenced
from infra.house.sources import ROOT, Fault, Source, line_at

VAGUE = (
    *("whoever", "whomever", "nobody", "somebody", "someone", "anybody", "anyone", "everybody", "everyone"),  # which person?
    *("told", "tells"),  # reports, shows, logs, returns
)
"""Words that name no subject, or no act: a sentence says which person, process, object or host it means, and what that does."""
_FOUND = re.compile(rf"\b(?:{'|'.join(VAGUE)})\b", re.IGNORECASE)


def of_texts(source: Source) -> Iterator[Fault]:
    """Yield the vague words of docstrings and comments; a text that stands alone below a constant is a docstring."""
    behind = "\n".join(line.partition("#")[2] for line in source.text.split("\n") if "#" in line).lower()
    yield from _named(source.name, [(node.lineno, str(node.value)) for node in source.alone()])
    yield from _named(source.name, comments(source) if any(word in behind for word in VAGUE) else ())


def of_messages(source: Source) -> Iterator[Fault]:
    """Yield the vague words of each string that may be a message: one with a space in it, the constant parts of an f-string, too."""
    return _named(source.name, [(node.lineno, text) for node in source.texts() if " " in (text := str(node.value))])


def of_pages() -> Iterator[Fault]:
    """Yield the vague words of the pages and of what describes the API."""
    for page in (*PAGES, ROOT / "handler" / "web" / "openapi.yaml"):
        yield from _named(name(page), [(1, page.read_text())])


def _named(place: str, texts: Iterable[tuple[int, str]]) -> Iterator[Fault]:
    found = list(texts)
    whole = "\0".join(text for _, text in found).lower()
    if not any(word in whole for word in VAGUE):  # most files have none
        return
    for line, text in found:
        prose = SPAN.sub("", unfenced(text))
        for word in _FOUND.finditer(prose):
            said = f"`{word.group()}`: say which person, process or object is meant, or what it does; a value stands in backticks"
            yield Fault(place, line + line_at(prose, word.start()) - 1, said)
