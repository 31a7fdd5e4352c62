"""Text without given values in it, however they are encoded.

Law: no secret of the operator comes here. What an author wrote and may read would tell him by its stars where it is like one.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

SHORTEST = 4  # spellings shorter than this are left alone: masking every `x` would only make logs unreadable

BEGINNING = 8
"""Characters at a text's end that are masked as the beginning of a secret: the text may have been cut within it."""

_CUT = ".…\ufffd"  # how a text that was cut may end

_TAIL = 1 << 16  # characters of a text's end in which such a beginning is looked for: texts are cut to fewer

_HEAD = 32  # characters that tell most spellings apart; tokens of one kind begin alike

_LONGEST_IN_URL = 4096  # characters: servers and programs take no longer ones

_PER_FIND = 4  # characters of a text whose look-up costs about as much as one search of a short text

_OF_GO = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})
"""What Go, and so all of Kubernetes, escapes in JSON that Python leaves alone."""

_Widths = list[tuple[int, dict[str, list[str]]]]
"""The spellings of one start, by the length of their heads and by those."""


class _Spellings:
    """Spellings by their first characters. No `re`: compiling one over many takes seconds, and hundreds are kept for ever."""

    __slots__ = ("_longest", "_ordered", "_starts", "count")

    def __init__(self, found: Iterable[str] = ()) -> None:
        starts: dict[str, dict[int, dict[str, list[str]]]] = {}
        distinct = {text for text in found if len(text) >= SHORTEST}
        for text in sorted(distinct, key=len, reverse=True):
            head = text[:_HEAD]
            starts.setdefault(text[:SHORTEST], {}).setdefault(len(head), {}).setdefault(head, []).append(text)
        self._starts: dict[str, _Widths] = {start: list(widths.items()) for start, widths in starts.items()}
        self._ordered = sorted(distinct)
        self._longest = max(map(len, distinct), default=0)
        self.count = len(distinct)

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield (start, end) of each spelling, of those with one head only the longest, and of the beginning of one at the end."""
        for at, widths in self._starting(text, 0, len(text)):
            for width, heads in widths:
                longest = next((each for each in heads.get(text[at : at + width], ()) if text.startswith(each, at)), "")
                if longest:
                    yield at, at + len(longest)
        for end in {len(text), len(text.rstrip(_CUT))}:
            yield from self._begun(text, end)

    def _starting(self, text: str, first: int, end: int) -> Iterator[tuple[int, _Widths]]:
        """Yield where in a part of a text a spelling may start, and what may follow; by the fewer: the starts, or the characters."""
        if len(self._starts) * _PER_FIND > end - first:
            for at in range(first, end - SHORTEST + 1):
                widths = self._starts.get(text[at : at + SHORTEST])
                if widths:
                    yield at, widths
            return
        for start, widths in self._starts.items():
            at = text.find(start, first, end)
            while at >= 0:
                yield at, widths
                at = text.find(start, at + 1, end)

    def _begun(self, text: str, end: int) -> Iterator[tuple[int, int]]:
        """The longest beginning of a spelling that a text ends with."""
        first = max(0, end - min(self._longest, _TAIL))
        found = end - BEGINNING + 1
        for at, _ in self._starting(text, first, end):
            if at < found and self._is_beginning(text, at, end):
                found = at
        if found <= end - BEGINNING:
            yield found, end

    def _is_beginning(self, text: str, at: int, end: int) -> bool:
        return all(self._begins(text[at:until]) for until in (min(end, at + _HEAD), end))

    def _begins(self, part: str) -> bool:
        place = bisect_left(self._ordered, part)
        return place < len(self._ordered) and self._ordered[place].startswith(part)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Mask:
    """A function from text to masked text. It holds the secrets, so it has no repr."""

    _spellings: _Spellings = field(default_factory=_Spellings)

    def __repr__(self) -> str:
        return "Mask(***)"

    @classmethod
    def of(cls, values: Iterable[str]) -> Self:
        """Mask these values."""
        return cls(_Spellings(spelling for text in values for spelling in spellings(text)))

    def __call__(self, text: str) -> str:
        """Replace every spelling of every secret; secrets that overlap are replaced as one."""
        places = sorted(set(self._spellings.places(text)))
        parts: list[str] = []
        end = 0
        for start, stop in places:
            if start >= end:
                parts += (text[end:start], "***")
            end = max(end, stop)
        return "".join((*parts, text[end:]))


def spellings(value: str) -> Iterator[str]:
    """Yield how a value may appear: plain, in one line, line by line, in JSON, in a URL, in base64 with and without padding."""
    raw = value.encode()
    yield value
    yield " ".join(value.split())  # messages quote a cluster in one line
    yield from (line.strip() for line in value.split("\n") if not line.startswith("-----"))  # a key's armour is no secret
    for ascii_only in (True, False):
        written = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield written
        yield written.translate(_OF_GO)
    yield repr(value)[1:-1]
    for quoted in (quote(value), quote(value, safe=""), quote_plus(value)) if len(value) <= _LONGEST_IN_URL else ():
        yield quoted
        yield re.sub("%..", lambda match: match[0].lower(), quoted)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(raw).decode()
        yield encoded
        yield encoded.rstrip("=")


SHORTEST_PART = 6
_OPENED = 128 << 10  # characters that are opened layer by layer: a hostile text has a hundred times its length in parts
_DEEPEST = 4  # layers that are opened: a URL, in JSON, in base64
_CHAINED = 8  # delimiters within one word (`a=b=c`) behind which the rest of it is taken
_LONG_PATH = 16  # a URL's path of so many characters may be a secret: a webhook's
_TOKEN = 16  # so long is a user's name only where it is a token
_DELIMITER = re.compile(r"[=:](?![=:])[ \t]*")
_QUOTED = re.compile(r"\"((?:\\.|[^\"\\])*)\"|'([^']*)'|`([^`]*)`")
_WORD = re.compile(r"[^\s\"'`<>;,&|]+")
_SHORT_WORD = re.compile(r"[^\s\"'`<>;,&|@/?#:=(){}\[\]]+")
_AFTER_WORD = re.compile(r"\b(?:password|passwd|token|secret|key|bearer|basic)\s+(\S+)", re.IGNORECASE)
_BETWEEN_TAGS = re.compile(r">([^<>]+)<")
_URL = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s\"'`<>]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_AROUND = " \t\r\"'`,;"


@dataclass(slots=True)
class Opening:
    """Opens many values: so many characters of them layer by layer, of the rest the outermost layer."""

    left: int = _OPENED

    def parts(self, value: str) -> frozenset[str]:
        """Return the parts of one more value."""
        self.left -= len(value)
        return parts(value, deep=self.left >= 0)


def parts(value: str, *, deep: bool = True) -> frozenset[str]:
    """Return what of a secret value is a secret of its own, for a program that prints what it has read prints such a part.

    DB_PASSWORD=hunter2hunter2                    after `=` and `:`: to the end of the line, of the quotes, of the word
    {"auths": {"r.io": {"auth": "YW5u…"}}}        every text and number of JSON, and what it holds in turn
    postgres://ann:hunter2hunter2@db/shop?k=v     of a URL: the login, the password, values of the query, the fragment, a long path
    password hunter2hunter2, <key>hunter2…</key>  after such a word, and between tags

    Parts shorter than SHORTEST_PART say too little: masking them would make texts unreadable. `deep`: also the parts of parts.
    """
    found: set[str] = set()
    _open({value}, found, _DEEPEST if deep else 1)
    return frozenset(each for each in found if len(each) >= SHORTEST_PART and each != value)


def _open(values: Iterable[str], found: set[str], deepest: int) -> None:
    inner = {part for value in values for part in _within(value, _CHAINED if deepest > 1 else 1) if len(part) >= SHORTEST_PART} - found
    found |= inner
    if inner and deepest > 1:
        _open(inner, found, deepest - 1)


def _within(value: str, most: int) -> Iterator[str]:
    yield from _of_json(value)
    yield from _of_base64(value)
    yield from (part for url in _URL.findall(value) for part in _of_url(url))
    for line in value.splitlines():
        yield from _of_line(line, most)


def _of_line(line: str, most: int) -> Iterator[str]:
    first, end, chained = _DELIMITER.search(line), 0, 0
    if first:
        yield from (line[first.end() :].strip(around) for around in (_AROUND, _AROUND + "=:"))
    for delimiter in _DELIMITER.finditer(line):
        chained = chained + 1 if delimiter.end() < end else 0
        word = _WORD.match(line, delimiter.end()) if chained < most else None
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
