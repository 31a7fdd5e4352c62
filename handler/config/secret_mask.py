"""Text without the secrets in it, however they are encoded: the last barrier before a log, an error, a page."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import quote, quote_plus

SHORTEST = 4  # spellings shorter than this are left alone: masking every `x` would only make logs unreadable

LEARNED = 4000
"""Values made while the process runs that are masked at once, at most: far above what lives at a time, so only memory is guarded by it."""

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
    def of(cls, values: Iterable[str], credentials: Iterable[tuple[str, str]] = ()) -> Self:
        """Mask these values, and these (user, password) pairs as HTTP Basic sends them (RFC 7617)."""
        pairs = (f"{user}:{password}" for user, password in credentials)
        return cls(_Spellings(spelling for text in (*values, *pairs) for spelling in spellings(text)))

    def __call__(self, text: str) -> str:
        """Replace every spelling of every secret, and of what was learned since; secrets that overlap are replaced as one."""
        places = sorted({*self._spellings.places(text), *_LEARNED.spellings.places(text)})
        parts: list[str] = []
        end = 0
        for start, stop in places:
            if start >= end:
                parts += (text[end:start], "***")
            end = max(end, stop)
        return "".join((*parts, text[end:]))


class _Learned:
    """Secrets made while the process runs, as a GitHub App's tokens. `spellings` is replaced, never changed: masks read it unlocked."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.spellings = _Spellings()
        self._clock = clock
        self._values: dict[str, tuple[float, tuple[str, ...]]] = {}  # when each may be forgotten, and its spellings
        self._lock = threading.Lock()

    def learn(self, values: Iterable[str], seconds: float) -> None:
        """Add values; whatever has ended leaves, and beyond LEARNED what ends first."""
        with self._lock:
            now = self._clock()
            for value in values:
                known = self._values.get(value)
                ends = max(now + seconds, known[0] if known else now)
                self._values[value] = (ends, known[1] if known else tuple(set(spellings(value))))
            lasting = sorted((item for item in self._values.items() if item[1][0] > now), key=lambda item: item[1][0])
            self._values = dict(lasting[-LEARNED:])
            self.spellings = _Spellings(spelling for _, written in self._values.values() for spelling in written)


_LEARNED = _Learned()


def learn(*values: str, seconds: float) -> None:
    """Let every mask of this process hide these values, too, from now on and for at least so many seconds: while they open anything."""
    _LEARNED.learn(values, seconds)


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
