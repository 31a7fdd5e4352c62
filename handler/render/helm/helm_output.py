"""What helm printed -> objects with their templates as places, or what made it fail. Runs in the child that ran helm.

Law: standard output is as untrusted as the chart. It is cut at helm's own `# Source:` lines, and each piece is read as a file of git is, so
that a broken one doesn't hide the next. A template of the chart that says otherwise only misplaces its own mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from handler.config.secret_mask import Mask
from handler.model.errors import Problem
from handler.model.tree import MAX_PATH, printable
from handler.render.document import Document
from handler.render.documents import documents
from handler.render.folders import IGNORE_FILE
from handler.render.frames import HiddenText, Row
from handler.render.helm.chart_facts import Kinds
from handler.render.helm.helm_errors import TemplateSources, problems, warnings
from handler.render.helm.pieces import OutputRow, Piece
from handler.render.objects import objects

_PIECE = re.compile(rb"^---\r?\n# Source: ([^\r\n]*)\r?\n", re.MULTILINE)
_SCALAR_LINE = re.compile(r"^[^#\n]*?(?::\s+|-\s+)[\"']?([^\"'\n]{3,}?)[\"']?\s*$", re.MULTILINE)
_MAX_HIDDEN = 5_000
_WORDS = ("true", "false", "null")


def read_output(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[OutputRow]:
    """Yield secret texts, the pieces of a render with their objects, and its warnings; or every mistake.

    Parts: standard output, the end of standard error. Options: `exit_code`, `home`; `chart`, `roots`, `values`: see `TemplateSources`;
    `kinds`: see `ChartFacts`; `hidden`: texts of Secrets; `known`: digests of pieces that aren't read again.
    """
    texts = tuple(dict.fromkeys(text for each in options["hidden"] for text in secret_texts(each)))
    yield from map(HiddenText, texts)
    said, mask = parts[1].decode("utf-8", "replace"), Mask.of(texts) if texts else str
    sources = TemplateSources(options["chart"], options["roots"], options["values"], options["home"], mask)
    if options["exit_code"]:
        yield from (_hidden(each, mask) for each in problems(said, sources, options["exit_code"]))
        return
    yield from warnings(said, sources)
    for row in _pieces(parts[0], sources, options["kinds"], frozenset(options["known"])):
        yield _hidden(row, mask) if isinstance(row, Problem) else row


def _hidden(problem: Problem, mask: Callable[[str], str]) -> Problem:
    """Return a mistake without secret texts: a key, a kind or a name that it quotes may be one."""
    return replace(problem, subject=mask(problem.subject), message=mask(problem.message), fix=mask(problem.fix))


def _pieces(output: bytes, sources: TemplateSources, kinds: Kinds, known: frozenset[str]) -> Iterator[Row | Piece]:
    cuts = [*_PIECE.finditer(output)]
    ends = [*(each.start() for each in cuts[1:]), len(output)]
    for cut, end in zip(cuts, ends, strict=False):
        place = printable(sources.place(cut[1].decode("utf-8", "replace")), MAX_PATH)
        lines, data = kinds.get(place, {}), output[cut.end() : end]
        piece = Piece.of(place, data, lines, known)
        yield piece
        if piece.new:
            yield from map(_advised, objects(_documents(data, place, lines)))


def _documents(data: bytes, place: str, lines: Mapping[str, int]) -> Iterator[Document | Problem]:
    for found in documents(data, f"{place}.yaml" if place.endswith(".json") else place):
        yield _misplaced(found, place) if isinstance(found, Problem) else _placed(found, place, lines)


def _advised(row: Row) -> Row:
    """Return a mistake without the advice on files that aren't meant for the cluster: a template is."""
    return replace(row, fix="") if isinstance(row, Problem) and IGNORE_FILE in row.fix else row


def _placed(found: Document, place: str, kinds: Mapping[str, int]) -> Document:
    """Return a document with the line of its template that says its kind; the first one where that isn't known."""
    kind = found.value.get("kind") if isinstance(found.value, dict) else None
    return Document(place, kinds.get(kind, 1) if isinstance(kind, str) else 1, found.value)


def _misplaced(found: Problem, place: str) -> Problem:
    """Return a mistake of what a template renders: the template's place, and the line of the rendered text in words."""
    line = found.place.rpartition(":")[2]
    return replace(found, message=f"{found.message} (line {line} of what it renders)", place=place)


def secret_texts(data: str) -> Iterator[str]:
    """Yield what of a Secret's value may show in a message: the value, and the scalars that it holds where it is YAML."""
    read = [each.value for each in documents(data.encode(), "values.yaml") if isinstance(each, Document)]
    waiting, count = [*read, data.strip(), *_SCALAR_LINE.findall(data)], 0
    while waiting and count < _MAX_HIDDEN:
        value, count = waiting.pop(), count + 1
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif value is not None and not isinstance(value, bool) and value not in _WORDS:
            yield str(value)
