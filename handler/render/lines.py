"""Where the fields of a document stand: `spec.groups[0].steps[1].action` -> its line. Runs in the render child, only after mistakes.

    a key              where it is written; one that `<<` merges, in the mapping that is merged
    an item            where it begins; an alias, where the alias stands
    below an alias     where its anchor has it, for that is the text to mend
    what is missing    where the nearest of its parents stands that is there

Law: pure; of bytes that were read without a mistake before. It reads them once more, so that a document without mistakes costs nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from handler.model.rollout import key_in_path
from handler.model.tree import printable
from handler.render.document import Document, Standing
from handler.render.yamls import MERGE_KEY, NO_KEY, Builder, yaml_documents

_WORD = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:\n]|[^\s{}\[\],:"]+')  # possessive: no way back is kept, else 150 bytes a letter
_END = re.compile(r"[.\[]|\Z")


def lines(data: bytes, path: str, fields: Sequence[str]) -> list[int]:
    """Return the line of each field of the one document of a file that isn't empty; 0: nothing of the field is there."""
    standing = next(filter(None, standings(data, path, as_json=path.endswith(".json"))), {})
    return [_line(standing, field) for field in fields]


def standings(data: bytes, path: str, *, as_json: bool) -> Iterator[Standing]:
    """Yield where all stands in each document of a file that is read without a mistake, in order."""
    text = data.decode("utf-8-sig")
    return _json(text) if as_json else _yaml(text.encode(), path)


def _line(standing: Standing, field: str) -> int:
    """Follow a path to its end or to where it breaks off. Where a key holds a point, the longest key that exists is meant."""
    line = 0
    while field:
        ends = [end.start() for end in _END.finditer(field) if end.start()]
        name = next((field[:end] for end in reversed(ends) if field[:end] in standing), None)
        if name is None:
            break
        line, standing = standing[name]
        field = field[len(name) :].removeprefix(".")
    return line


def _yaml(data: bytes, path: str) -> Iterator[Standing]:
    for document in yaml_documents(data, path, Noting):
        if isinstance(document, Document):
            yield document.standing


class Noting(Builder):
    """Notes where every key and item stands. `below`: what stands in a mapping or sequence, by its `id`; those of one document live on."""

    def _document(self, parser: Any) -> Document:
        self.below: dict[int, Standing] = {}
        document = super()._document(parser)
        return replace(document, standing=self.below.get(id(document.value), {}))

    def _open(self, event: Any) -> None:
        super()._open(event)
        top = self.stack[-1]
        self.below[id(top.items if top.seen is None else top.value)] = {}

    def _add(self, value: Any, size: int, line: int) -> None:
        top = self.stack[-1] if self.stack else None
        name = top.key if top else None
        super()._add(value, size, line)
        if top is None:
            return
        inner = self.below.get(id(value), {}) if isinstance(value, dict | list) else {}
        if top.seen is None:
            self.below[id(top.items)][f"[{len(top.items) - 1}]"] = self.first_line + line, inner
        elif name is MERGE_KEY:
            for part in reversed(value if isinstance(value, list) else [value]):
                self.below[id(top.value)].update(self.below.get(id(part), {}))
        elif name is not None and name is not NO_KEY:
            self.below[id(top.value)][key_in_path(name)] = self.first_line + top.key_line, inner


def _json(text: str) -> Iterator[Standing]:
    """Yield the same of JSON, which YAML's reader doesn't take whole."""
    documents: Standing = {}
    stack = [(documents, False)]
    key: tuple[str, int] | None = None
    for word, line in _words(text):
        standing, mapping = stack[-1]
        if word in ("}", "]"):
            stack.pop()
        elif mapping and key is None and word != ",":
            key = key_in_path(json.loads(word)), line
        elif word not in (",", ":"):
            name, at = key or (f"[{len(standing)}]", line)
            inner: Standing = {}
            standing[name], key = (at, inner), None
            if word in ("{", "["):
                stack.append((inner, word == "{"))
    return (inner for _, inner in documents.values())


def suspects(text: str) -> Iterator[tuple[str, int]]:
    """Yield what a JSON value that can be decoded may be refused for, with its line.

    `key name`: written a second time in its object; a number or constant as it stands, up to 20 characters; `JSON`: half a surrogate pair.
    """
    stack: list[dict[str, int]] = []
    before = "", 0
    for word, line in _words(text):
        if word in ("}", "]"):
            stack.pop()
        elif word in ("{", "["):
            stack.append({})
        elif word == ":":
            name = json.loads(before[0])
            times = stack[-1][name] = stack[-1].get(name, 0) + 1
            if times == 2:
                yield f"key {printable(name, 80)}", before[1]
        elif word[0] == '"' and "\\u" in word and _is_half(json.loads(word)):
            yield "JSON", line
        elif word[0] not in '",':
            yield word[:20], line
        before = word, line


def _is_half(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _words(text: str) -> Iterator[tuple[str, int]]:
    line = 1
    for found in _WORD.finditer(text):
        word = found[0]
        if word == "\n":
            line += 1
        else:
            yield word, line
