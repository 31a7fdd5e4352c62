"""Text without the secrets in it, however they are encoded: the last barrier before a log, an error, a page."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, quote_plus

SHORTEST = 4
"""Spellings shorter than this are left alone: masking every `x` would only make logs unreadable."""

LEARNED = 400
"""Values made while the process runs that are still masked."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Mask:
    """A function from text to masked text. Its pattern holds the secrets, so it has no repr."""

    _pattern: re.Pattern[str] | None = None

    def __repr__(self) -> str:
        return "Mask(***)"

    @classmethod
    def of(cls, values: Iterable[str], credentials: Iterable[tuple[str, str]] = ()) -> Self:
        """Mask these values, and these (user, password) pairs as HTTP Basic sends them (RFC 7617)."""
        pairs = (f"{user}:{password}" for user, password in credentials)
        found = {spelling for text in (*values, *pairs) for spelling in spellings(text) if len(spelling) >= SHORTEST}
        ordered = sorted(found, key=lambda text: (-len(text), text))
        return cls(re.compile("|".join(map(re.escape, ordered))) if ordered else None)

    def __call__(self, text: str) -> str:
        """Replace every spelling of every secret, the longest first, and of what was learned since."""
        masked = self._pattern.sub("***", text) if self._pattern else text
        return _LEARNED.pattern.sub("***", masked) if _LEARNED.pattern else masked


class _Learned:
    """Secrets that no configuration names, because they are made while the process runs: a GitHub App's tokens."""

    def __init__(self) -> None:
        self.pattern: re.Pattern[str] | None = None
        self._values: deque[str] = deque(maxlen=LEARNED)
        self._lock = threading.Lock()

    def learn(self, values: Iterable[str]) -> None:
        """Add values; the oldest leave, long after they have expired."""
        with self._lock:
            self._values.extend(values)
            found = {spelling for text in self._values for spelling in spellings(text) if len(spelling) >= SHORTEST}
            self.pattern = re.compile("|".join(map(re.escape, sorted(found, key=lambda text: (-len(text), text)))))


_LEARNED = _Learned()


def learn(*values: str) -> None:
    """Let every mask of this process hide these values, too, from now on."""
    _LEARNED.learn(values)


def spellings(value: str) -> Iterator[str]:
    """Yield how a value may appear: plain, line by line, in JSON, in a URL, in base64 with and without padding."""
    raw = value.encode()
    yield value
    yield from (line.strip() for line in value.split("\n") if not line.startswith("-----"))  # a key's armour is no secret
    for ascii_only in (True, False):
        yield json.dumps(value, ensure_ascii=ascii_only)[1:-1]
    yield repr(value)[1:-1]
    for quoted in (quote(value), quote(value, safe=""), quote_plus(value)):
        yield quoted
        yield re.sub("%..", lambda match: match[0].lower(), quoted)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(raw).decode()
        yield encoded
        yield encoded.rstrip("=")
