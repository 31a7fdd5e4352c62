"""Bytes of a file -> documents. First stage of a render; runs in the render child.

Law: whatever the bytes are, the result is documents and `Problem`s with file:line, never another exception (but for a lack of memory).
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from handler.model.errors import ManifestInvalid, Problem
from handler.model.tree import printable
from handler.render import scalars
from handler.render.document import MAX_BYTES, MAX_DEPTH, Document, line_at
from handler.render.lines import suspects
from handler.render.yamls import yaml_documents

_BLANK = re.compile(r"[ \t\r\n]*")


def parse(data: bytes, path: str) -> list[tuple[int, Any]]:
    """Return the documents of a file, each with its line. Raises ManifestInvalid with every mistake of the file."""
    found = list(documents(data, path))
    problems = [item for item in found if isinstance(item, Problem)]
    if problems:
        raise ManifestInvalid(*problems)
    return [(item.line, item.value) for item in found if isinstance(item, Document)]


def documents(data: bytes, path: str) -> Iterator[Document | Problem]:
    """Yield the documents of a file and its mistakes, in order: a broken document doesn't hide the next one.

    One or more JSON values where `is_json` says so; else YAML.
    """
    if len(data) > MAX_BYTES:
        yield Problem("file", f"has {len(data):,} bytes; at most {MAX_BYTES:,} are read", path)
        return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as bad:
        yield Problem("file", "isn't UTF-8", f"{path}:{line_at(data, bad.start)}")
        return
    yield from _json_documents(text, path) if is_json(text, path) else yaml_documents(text.encode(), path)


def is_json(text: str, path: str) -> bool:
    """Whether a file's text is read as JSON: its name says so, or it says nothing and the text begins as JSON does."""
    return path.endswith(".json") or (not path.endswith((".yaml", ".yml")) and text.lstrip().startswith("{") and "\n---" not in text)


def _json_documents(text: str, path: str) -> Iterator[Document | Problem]:
    at, line = 0, 1
    while (start := _end_of_blank(text, at)) < len(text):
        line += text.count("\n", at, start)
        reader = _JsonReader(f"{path}:{line}")
        try:
            value, end = reader.decoder.raw_decode(text, start)
            judge(value)
        except json.JSONDecodeError as bad:
            yield Problem("JSON", bad.msg, f"{path}:{bad.lineno}")
            return
        except RecursionError:
            yield Problem("JSON", f"nested deeper than {MAX_DEPTH} levels", f"{path}:{line}")
            return
        except UnicodeEncodeError:
            reader.problem("JSON", "holds half of a surrogate pair, which is no character")
        if reader.problems:
            yield from _placed(reader.problems, text[start:end], path, line)
        else:
            yield Document(path, line, value)
        line += text.count("\n", start, end)
        at = end


def _placed(problems: list[Problem], text: str, path: str, first: int) -> Iterator[Problem]:
    """Give the mistakes of a value, whose decoder knows no lines, the lines where they are written. `first`: where the value begins."""
    wanted = {subject for problem in problems for subject in _subjects(problem)}
    found: dict[str, list[int]] = defaultdict(list)
    for subject, line in suspects(text):
        if subject in wanted:
            found[subject].append(first + line - 1)
    for known in found.values():
        known.reverse()  # the first is taken first, from the end of the list
    for problem in problems:
        known = next(filter(None, (found.get(subject) for subject in _subjects(problem))), [])
        yield replace(problem, place=f"{path}:{known.pop()}") if known else problem


def _subjects(problem: Problem) -> tuple[str, str]:
    """Return by what `suspects` may call a mistake: a number by its text, anything else by its subject."""
    return problem.message.partition(" ")[0], problem.subject


def _end_of_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def judge(value: Any) -> None:
    """Refuse what `json` lets through: deep nesting (RecursionError), a string that UTF-8 can't say (UnicodeEncodeError)."""
    json.dumps(value, ensure_ascii=False).encode()
    layer = [value]
    for _ in range(MAX_DEPTH + 1):
        if not layer:
            return
        below: list[Any] = []
        for part in layer:
            if isinstance(part, dict):
                below.extend(part.values())
            elif isinstance(part, list):
                below.extend(part)
        layer = below
    raise RecursionError


class _JsonReader:
    """A decoder that notes what plain `json` takes silently: duplicate keys, NaN, numbers beyond a float."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.problems: list[Problem] = []
        self.decoder = json.JSONDecoder(
            object_pairs_hook=self._object, parse_float=self._float, parse_int=self._int, parse_constant=self._constant
        )

    def problem(self, subject: str, message: str) -> None:
        self.problems.append(Problem(subject, message, self.place))

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            for name, times in Counter(name for name, _ in pairs).items():
                if times > 1:
                    self.problem(f"key {printable(name, 80)}", "written twice")
        return value

    def _int(self, text: str) -> int | float | None:
        value = int(text) if len(text) <= 20 else None
        return value if value is not None and -(2**63) <= value < 2**64 else self._float(text)

    def _float(self, text: str) -> int | float | None:
        try:
            return scalars.number(float(text))
        except ValueError:
            self._constant(text)
            return None

    def _constant(self, text: str) -> None:
        self.problem("JSON", f"{text[:20]} is no number that JSON knows")
