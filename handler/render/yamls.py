"""YAML -> values, as the API server's Go decoder reads it.

libyaml's scanner gives a flat stream of events; values are built from it without recursion, so that depth, aliases and size are judged
*before* anything is expanded: PyYAML's own composer recurses in C and dies of a segmentation fault on 50,000 open brackets, and
306 bytes of aliases stand for half a billion nodes. Stricter than Go where Go only hides mistakes: duplicate keys and unknown tags.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import yaml
from yaml._yaml import CParser  # fails at import where PyYAML was built without libyaml: the pure one is ten times slower

from handler.model.errors import Problem
from handler.model.tree import printable
from handler.render import scalars
from handler.render.document import MAX_DEPTH, MAX_NODES, Document, line_at

_SEPARATOR = re.compile(rb"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_MERGE = scalars.CORE + "merge"
NO_KEY = "\0no key"
MERGE_KEY = "\0merge"  # stand for a key that was refused and for `<<`, by identity: no key that was read is one of them


def yaml_documents(data: bytes, path: str, builders: type[Builder] | None = None) -> Iterator[Document | Problem]:
    """Yield the documents of UTF-8 bytes and their mistakes, each read by itself, split at `---` as Kubernetes does."""
    starts = [0, *(found.start() for found in _SEPARATOR.finditer(data) if found.start()), len(data)]
    line = 1
    budget = MAX_NODES
    for start, end in itertools.pairwise(starts):
        chunk = data[start:end]
        if chunk.removeprefix(b"---").strip():
            builder = (builders or Builder)(path, line, budget)
            yield from builder.documents(chunk)
            budget -= builder.nodes
        line += chunk.count(b"\n")


class _Refused(Exception):
    """The document can't be read on."""


class _Open:
    """A mapping or sequence whose end hasn't come yet. `size`: nodes once every alias is written out."""

    __slots__ = ("anchor", "items", "key", "key_line", "line", "seen", "size", "value")

    def __init__(self, line: int, anchor: str | None, *, mapping: bool) -> None:
        self.line = line
        self.anchor = anchor
        self.size = 1
        self.items: list[Any] = []
        self.value: dict[str, Any] = {}
        self.seen: dict[str, int] | None = {} if mapping else None
        self.key: str | None = None
        self.key_line = line


class Builder:
    """Builds the values of one chunk from libyaml's events."""

    def __init__(self, path: str, first_line: int, budget: int) -> None:
        self.path = path
        self.first_line = first_line
        self.budget = budget
        self.nodes = 0
        self.problems: list[Problem] = []

    def documents(self, chunk: bytes) -> Iterator[Document | Problem]:
        """Yield every document of the chunk, then its mistakes; a document with mistakes isn't yielded."""
        try:
            parser = CParser(chunk)
            while type(event := parser.get_event()) is not yaml.StreamEndEvent:
                if type(event) is yaml.DocumentStartEvent:
                    document = self._document(parser)
                    if not self.problems:
                        yield document
        except _Refused:
            pass
        except yaml.MarkedYAMLError as bad:
            mark = bad.problem_mark or bad.context_mark
            self._problem("YAML", str(bad.problem or "can't be read"), mark.line if mark else 0)
        except yaml.reader.ReaderError as bad:
            self._problem("YAML", str(bad.reason), line_at(chunk, bad.position) - 1)
        except MemoryError:
            raise  # the render child's limit, not this document's mistake alone
        except Exception as bad:  # noqa: BLE001 - whatever PyYAML raises beside its own errors is still the document's mistake
            self._problem("YAML", f"can't be read ({type(bad).__name__})", 0)
        yield from self.problems

    def _document(self, parser: CParser) -> Document:
        """Read events up to the end of one document. Anchors don't reach beyond it."""
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.lines: dict[int, int] = {}
        self.stack: list[_Open] = []
        self.root: Any = None
        self.size = 0
        line = -1
        following: Callable[[], Any] = parser.get_event
        while (kind := type(event := following())) is not yaml.DocumentEndEvent:
            line = event.start_mark.line if line < 0 else line
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            else:
                self._take(kind, event)
        self.nodes += self.size
        return Document(self.path, self.first_line + line, self.root, self.lines)

    def _take(self, kind: type, event: Any) -> None:
        if kind in (yaml.MappingStartEvent, yaml.SequenceStartEvent):
            self._open(event)
        elif kind is yaml.AliasEvent:
            self._alias(event)
        else:
            self._close()

    def _scalar(self, event: Any) -> None:
        line, text = event.start_mark.line, event.value
        if text == "<<" and self._expects_key() and _is_merge(event):
            self.stack[-1].key = MERGE_KEY
            return
        value: scalars.Scalar = text
        try:
            if event.tag is not None:
                value = scalars.tagged(event.tag, text)
            elif event.implicit[0]:
                value = scalars.plain(text)
        except ValueError as bad:
            self._problem(self._subject(), str(bad), line)
        size = 1 + len(text) // 64
        if event.anchor:
            self.anchors[event.anchor] = (value, size)
        self._add(value, size, line)

    def _open(self, event: Any) -> None:
        line, mapping = event.start_mark.line, isinstance(event, yaml.MappingStartEvent)
        if len(self.stack) >= MAX_DEPTH:
            self._refuse(self._subject(), f"nested deeper than {MAX_DEPTH} levels", line)
        if self._expects_key():
            self._refuse("key", "a mapping or sequence can't be a key", line)
        allowed = (None, "!", f"{scalars.CORE}map", f"{scalars.CORE}set") if mapping else (None, "!", f"{scalars.CORE}seq")
        if event.tag not in allowed:
            self._problem(self._subject(), scalars.UNKNOWN_TAG, line)
        opened = _Open(line, event.anchor, mapping=mapping)
        if event.anchor:
            self.anchors[event.anchor] = (opened, 0)  # so that an alias within it is known to be recursive
        self.stack.append(opened)

    def _close(self) -> None:
        done = self.stack.pop()
        value: Any = done.items if done.seen is None else done.value
        if done.seen is not None and len(self.stack) <= 2:
            self.lines[id(value)] = self.first_line + done.line
        if done.anchor and self.anchors[done.anchor][0] is done:  # unless something within it has taken the name
            self.anchors[done.anchor] = (value, done.size)
        self._add(value, done.size, done.line)

    def _alias(self, event: Any) -> None:
        line = event.start_mark.line
        if event.anchor not in self.anchors:
            self._refuse(self._subject(), "an alias of no anchor that stands before it; a text that begins with * must be quoted", line)
        value, size = self.anchors[event.anchor]
        if isinstance(value, _Open):
            self._refuse(self._subject(), "an alias of a value that contains itself", line)
        if self._expects_key() and isinstance(value, dict | list):
            self._refuse("key", "a mapping or sequence can't be a key", line)
        if self.stack and self.stack[-1].key is MERGE_KEY and not isinstance(value, dict):
            value = None  # go-yaml takes a sequence of mappings only where it is written out
        self._add(value, size, line)

    def _add(self, value: Any, size: int, line: int) -> None:
        """Put a finished value where it belongs: a key, a key's value, an item, or the document itself."""
        if not self.stack:
            self.root, self.size = self._normal(value, line), size
            self._count(size, line)
            return
        top = self.stack[-1]
        top.size += size
        if top.size > self.budget:
            self._count(top.size, line)
        if top.seen is None:
            top.items.append(self._normal(value, line) if type(value) is float else value)
        elif top.key is None:
            top.key, top.key_line = self._key(value, line, top.seen), line
        else:
            name, top.key = top.key, None
            if name is MERGE_KEY:
                self._merge(top, value, line)
            elif name is not NO_KEY:
                top.value[name] = self._normal(value, line, name) if type(value) is float else value

    def _key(self, value: Any, line: int, seen: dict[str, int]) -> str:
        try:
            name = value if type(value) is str else scalars.key(value)
        except ValueError as bad:
            self._problem("key", str(bad), line)
            return NO_KEY
        if name in seen:
            self._problem(f"key {printable(name, 80)}", f"written twice, first in line {self.first_line + seen[name]}", line)
            return NO_KEY
        seen[name] = line
        return name

    def _merge(self, top: _Open, value: Any, line: int) -> None:
        """`<<` as go-yaml v2 merges: keys written before it lose, those after it win; within a list the earlier mapping wins."""
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            self._problem("key <<", "merges a mapping or a sequence of mappings, nothing else", line)
            return
        for part in reversed(parts):
            top.value.update(part)

    def _normal(self, value: Any, line: int, name: str = "") -> Any:
        if not isinstance(value, float):
            return value
        try:
            return scalars.number(value)
        except ValueError as bad:
            self._problem(f"key {printable(name, 80)}" if name else "value", str(bad), line)
            return None

    def _count(self, size: int, line: int) -> None:
        if size > self.budget:
            self._refuse("file", f"stands for more than {MAX_NODES:,} values once its aliases are written out", line)

    def _expects_key(self) -> bool:
        return bool(self.stack) and self.stack[-1].seen is not None and self.stack[-1].key is None

    def _subject(self) -> str:
        name = self.stack[-1].key if self.stack else None
        return f"key {printable(name, 80)}" if name and not name.startswith("\0") else "value"

    def _problem(self, subject: str, message: str, line: int) -> None:
        self.problems.append(Problem(subject, message, f"{self.path}:{self.first_line + line}"))

    def _refuse(self, subject: str, message: str, line: int) -> NoReturn:
        self._problem(subject, message, line)
        raise _Refused


def _is_merge(event: Any) -> bool:
    return bool(event.tag == _MERGE or (event.tag is None and event.implicit[0]))
