"""index.yaml of a chart repository -> the versions of one chart (https://helm.sh/docs/topics/chart_repository/).

Law: an index of 10 MB is common and hostile ones exist: libyaml's events are read one by one, what isn't wanted is skipped, nothing is
expanded, so that time is linear and memory small (11 MB, 620,000 events: 1 s). Runs in the render child.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import yaml
from yaml._yaml import CParser

from handler.model.tree import printable
from handler.render.document import MAX_DEPTH

MAX_ENTRIES = 200_000
MAX_URLS = 4  # of an entry; Helm takes the first
LONGEST = 2000  # characters of a text
BATCH = 500  # entries of one frame
Row = tuple[str, list[str], str, str]


class _Refused(Exception):
    """The index can't be read. `line`: from 0."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def index_entries(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the entries of a chart, many a frame, or one mistake. Options: `name`: of the chart."""
    try:
        entries = _entries(_Events(parts[0]), options["name"])
        while batch := list(itertools.islice(entries, BATCH)):
            yield json.dumps(batch).encode()
    except _Refused as wrong:
        yield json.dumps({"wrong": str(wrong), "line": wrong.line + 1}).encode()
    except yaml.MarkedYAMLError as wrong:
        line = wrong.problem_mark.line if wrong.problem_mark else 0
        yield json.dumps({"wrong": str(wrong.problem or "is no YAML"), "line": line + 1}).encode()
    except yaml.reader.ReaderError as wrong:
        yield json.dumps({"wrong": str(wrong.reason), "line": 0}).encode()


class _Events:
    """The events of one document. What is wanted must be written out: an alias or `<<` there is refused."""

    def __init__(self, data: bytes) -> None:
        self._parser = CParser(data)
        for _ in range(2):  # the stream begins, the document begins
            self._parser.get_event()

    def mapping(self) -> Iterator[str]:
        """Yield the keys of the mapping that comes next; each value is to be taken before the next key. Nothing comes of an empty value."""
        event = self._next()
        if _is_empty(event):
            return
        if not isinstance(event, yaml.MappingStartEvent):
            self._refuse("a mapping is expected", event)
        seen: set[str] = set()
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._text(event)
            if key in seen or key == "<<":
                self._refuse(f"key {printable(key, 80)} is written twice" if key in seen else "`<<` isn't read here", event)
            seen.add(key)
            yield key

    def sequence(self) -> Iterator[None]:
        """Yield at each item of the sequence that comes next; it is to be taken before the next one."""
        event = self._next()
        if _is_empty(event):
            return
        if not isinstance(event, yaml.SequenceStartEvent):
            self._refuse("a list is expected", event)
        while not isinstance(self._parser.peek_event(), yaml.SequenceEndEvent):
            yield
        self._parser.get_event()

    def text(self) -> str:
        """Take a scalar."""
        return self._text(self._next())

    def skip(self) -> None:
        """Pass a value, however large."""
        depth = 0
        while True:
            event = self._parser.get_event()
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    self._refuse(f"nested deeper than {MAX_DEPTH} levels", event)
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth == 0:
                return

    def _next(self) -> Any:
        event = self._parser.get_event()
        if isinstance(event, yaml.AliasEvent):
            self._refuse("an alias isn't read here", event)
        return event

    def _text(self, event: Any) -> str:
        if not isinstance(event, yaml.ScalarEvent) or len(event.value) > LONGEST:
            self._refuse("a text is expected, not a mapping, a list or a long text", event)
        return str(event.value)

    def _refuse(self, message: str, event: Any) -> NoReturn:
        raise _Refused(message, event.start_mark.line if event else 0)


def _is_empty(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value in ("", "~", "null")


def _entries(events: _Events, name: str) -> Iterator[Row]:
    known = False
    for key in events.mapping():
        known = known or key == "entries"
        if key != "entries":
            events.skip()
            continue
        for chart in events.mapping():
            if chart == name:
                yield from _versions(events)
            else:
                events.skip()
    if not known:
        raise _Refused("has no `entries`: this is no index of charts", 0)


def _versions(events: _Events) -> Iterator[Row]:
    for number, _ in enumerate(events.sequence()):
        if number >= MAX_ENTRIES:
            raise _Refused(f"has more than {MAX_ENTRIES:,} versions of one chart", 0)
        yield _version(events)


def _version(events: _Events) -> Row:
    texts, urls = {"version": "", "digest": "", "name": ""}, []
    for key in events.mapping():
        if key in texts:
            texts[key] = events.text()
        elif key == "urls":
            urls = [events.text() for _ in events.sequence()]
        else:
            events.skip()
    return texts["version"], urls[:MAX_URLS], texts["digest"], texts["name"]
