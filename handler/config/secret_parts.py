"""What stands in a secret value that holds more than one thing: a file of settings, a URL, a login, base64 of any of them. Pure.

    DB_PASSWORD=hunter2hunter2                    after `=` and `:`: to the end of the line, of the quotes, of the word
    {"auths": {"r.io": {"auth": "YW5u…"}}}        every text and number of JSON, and what it holds in turn
    postgres://ann:hunter2hunter2@db/shop?k=v     of a URL: who signs in, the password, values of the query, the fragment, a long path
    password hunter2hunter2, <key>hunter2…</key>  after such a word, and between tags

Law: a program that prints what it has read prints such a part, not the whole. A part that is shorter than SHORTEST_PART says too little,
and masking it would make texts unreadable.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

SHORTEST_PART = 6
_DEEPEST = 4
"""Layers that are opened: a URL, in JSON, in base64."""
_CHAINED = 8
"""Delimiters within one word (`a=b=c`) behind which the rest of it is taken."""
_LONG_PATH = 16
"""A URL's path of so many characters may be a secret: a webhook's."""
_TOKEN = 16
"""So long is a user's name only where it is a token."""
_DELIMITER = re.compile(r"[=:](?![=:])[ \t]*")
_QUOTED = re.compile(r"\"((?:\\.|[^\"\\])*)\"|'([^']*)'|`([^`]*)`")
_WORD = re.compile(r"[^\s\"'`<>;,&|]+")
_SHORT_WORD = re.compile(r"[^\s\"'`<>;,&|@/?#:=(){}\[\]]+")
_AFTER_WORD = re.compile(r"\b(?:password|passwd|token|secret|key|bearer|basic)\s+(\S+)", re.IGNORECASE)
_BETWEEN_TAGS = re.compile(r">([^<>]+)<")
_URL = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s\"'`<>]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_AROUND = " \t\r\"'`,;"


def parts(value: str) -> frozenset[str]:
    """Return what of a secret value is a secret of its own; the value itself isn't among it."""
    found: set[str] = set()
    _open({value}, found, _DEEPEST)
    return frozenset(each for each in found if len(each) >= SHORTEST_PART and each != value)


def _open(values: Iterable[str], found: set[str], deepest: int) -> None:
    """Add the parts of some values, and the parts of those."""
    inner = {part for value in values for part in _within(value) if len(part) >= SHORTEST_PART} - found
    found |= inner
    if inner and deepest > 1:
        _open(inner, found, deepest - 1)


def _within(value: str) -> Iterator[str]:
    yield from _of_json(value)
    yield from _of_base64(value)
    yield from (part for url in _URL.findall(value) for part in _of_url(url))
    for line in value.splitlines():
        yield from _of_line(line)


def _of_line(line: str) -> Iterator[str]:
    """Yield what stands behind the delimiters of one line."""
    first, end, chained = _DELIMITER.search(line), 0, 0
    if first:
        yield line[first.end() :].strip(_AROUND)
    for delimiter in _DELIMITER.finditer(line):
        chained = chained + 1 if delimiter.end() < end else 0
        word = _WORD.match(line, delimiter.end()) if chained < _CHAINED else None
        end = max(end, word.end() if word else 0)
        yield from (found[0] for found in (word, _SHORT_WORD.match(line, delimiter.end())) if found)
        yield from (each for found in [_QUOTED.match(line, delimiter.end())] if found for each in found.groups() if each)
    yield from _AFTER_WORD.findall(line)
    yield from (text.strip() for text in _BETWEEN_TAGS.findall(line))


def _of_json(value: str) -> Iterator[str]:
    if not value.lstrip().startswith(("{", "[", '"')):
        return
    try:
        yield from _leaves(json.loads(value))
    except (ValueError, RecursionError):
        return


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for below in value.values() if isinstance(value, dict) else value:
            yield from _leaves(below)
    elif isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield str(value)


def _of_base64(value: str) -> Iterator[str]:
    """Yield what a value says that is base64 as a whole, with or without its padding."""
    text = "".join(value.split())
    if not _BASE64.fullmatch(text):
        return
    try:
        decoded = base64.b64decode(text.rstrip("=").translate(str.maketrans("-_", "+/")) + "==").decode()
    except (binascii.Error, ValueError):
        return
    if all(char.isprintable() or char in "\r\n\t" for char in decoded):
        yield decoded


def _of_url(url: str) -> Iterator[str]:
    """Yield what of a URL signs in, as it stands and decoded."""
    try:
        split = urlsplit(url)
    except ValueError:
        return
    login, at, _ = split.netloc.rpartition("@")
    user, colon, password = login.partition(":")
    found = [login, password] if at else []
    found += [user] if at and (not colon or len(user) >= _TOKEN) else []
    found += [value for pair in split.query.split("&") if (value := pair.partition("=")[2])]
    found += [split.fragment, split.path if len(split.path) >= _LONG_PATH else ""]
    for each in found:
        yield each
        yield unquote(each)
    yield from (value for _, value in parse_qsl(split.query))
