"""Bytes of a file -> its documents and where everything in them stands, for what isn't rendered but read (`anneal import`).

Runs in the render child: the text is untrusted. Items of a `List`, as `kubectl get -o yaml` prints one, are documents of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from handler.model.errors import Problem
from handler.render.document import Document, Standing
from handler.render.documents import documents, is_json
from handler.render.frames import decode_problem, encode
from handler.render.lines import standings

Located = tuple[str, int, Any, Standing, dict[str, Any]]
"""Path, line, value, where its fields stand, and the YAML texts in it, read, by the path of their field."""


def located(data: bytes, path: str, texts: Sequence[Sequence[str]]) -> Iterator[Located | Problem]:
    """Yield the objects of a file and its mistakes, in order. `texts`: fields that hold YAML as text, by their keys; `*`: any item."""
    found = list(documents(data, path))
    known = _standings(data, path, found)
    for item in found:
        if isinstance(item, Problem):
            yield item
            continue
        standing = next(known, {})
        for value, below, line in _items(item, standing):
            yield path, line, value, below, dict(_read_texts(value, texts, path))


def _standings(data: bytes, path: str, found: Sequence[Document | Problem]) -> Iterator[Standing]:
    """Yield where things stand in each document; in JSON with a mistake nothing is known."""
    if not any(isinstance(item, Document) for item in found):
        return iter(())
    as_json = is_json(data.decode("utf-8-sig"), path)
    if as_json and any(isinstance(item, Problem) for item in found):
        return iter(())
    return standings(data, path, as_json=as_json)


def _items(document: Document, standing: Standing) -> Iterator[tuple[Any, Standing, int]]:
    value = document.value
    items = value.get("items") if isinstance(value, dict) and str(value.get("kind", "")).endswith("List") else None
    if not isinstance(items, list):
        yield value, standing, document.line
        return
    _, below = standing.get("items", (document.line, {}))
    for index, item in enumerate(items):
        line, inner = below.get(f"[{index}]", (document.line, {}))
        yield item, inner, line


def _read_texts(value: Any, texts: Sequence[Sequence[str]], path: str) -> Iterator[tuple[str, Any]]:
    for keys in texts:
        for name, text in _values(value, keys, ()):
            found = list(documents(text.encode(), f"{path}#")) if isinstance(text, str) else []
            if len(found) == 1 and isinstance(found[0], Document):
                yield ".".join(name), found[0].value


def _values(value: Any, keys: Sequence[str], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not keys:
        yield above, value
    elif keys[0] == "*" and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _values(item, keys[1:], (*above, str(index)))
    elif isinstance(value, dict) and keys[0] in value:
        yield from _values(value[keys[0]], keys[1:], (*above, keys[0]))


def encode_located(row: Located | Problem) -> bytes:
    """Write one object or mistake."""
    if isinstance(row, Problem):
        return encode(row)
    return b"D" + json.dumps(row).encode()


def decode_located(frame: bytes) -> Located | Problem:
    """Read one object or mistake. Raises ValueError: the frame is neither."""
    if frame[:1] != b"D":
        return decode_problem(frame)
    facts = json.loads(frame[1:])
    if isinstance(facts, list) and len(facts) == 5:
        path, line, value, standing, texts = facts
        if isinstance(path, str) and type(line) is int and isinstance(texts, dict) and _is_standing(standing):
            return path, line, value, standing, texts
    raise ValueError("neither an object nor a mistake")


def _is_standing(standing: Any) -> bool:
    layer = [standing]
    while layer:
        each = layer.pop()
        if not isinstance(each, dict):
            return False
        for pair in each.values():
            if not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is int):
                return False
            layer.append(pair[1])
    return True
