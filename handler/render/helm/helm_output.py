"""What helm printed -> objects with their templates as places, or what made it fail. Runs in the child that ran helm.

Law: standard output is as untrusted as the chart. It is cut at helm's own `# Source:` lines, and each piece is read as a file of git is, so
that a broken one doesn't hide the next. A template of the chart that says otherwise only misplaces its own mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from handler.model.errors import Problem
from handler.model.tree import MAX_PATH, printable
from handler.render.document import Document
from handler.render.documents import documents
from handler.render.folders import IGNORE_FILE
from handler.render.frames import Row
from handler.render.helm.chart_facts import Kinds
from handler.render.helm.helm_errors import TemplateSources, problems, warnings
from handler.render.helm.pieces import OutputRow, Piece
from handler.render.objects import objects

_PIECE = re.compile(rb"^---\r?\n# Source: ([^\r\n]*)\r?\n", re.MULTILINE)


def read_output(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[OutputRow]:
    """Yield the pieces of a render with their objects, and its warnings; or every mistake.

    Parts: standard output, the end of standard error. Options: `exit_code`, `home`; `chart`, `roots`, `values`: see `TemplateSources`;
    `kinds`: see `ChartFacts`; `known`: digests of pieces that aren't read again.
    """
    said = parts[1].decode("utf-8", "replace")
    sources = TemplateSources(options["chart"], options["roots"], options["values"], options["home"])
    if options["exit_code"]:
        yield from problems(said, sources, options["exit_code"])
        return
    yield from warnings(said, sources)
    yield from _pieces(parts[0], sources, options["kinds"], frozenset(options["known"]))


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
