"""The letters of a JSONPath: names, quoted names, indices, values and operators, each with the place where it can't be read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
LONGEST = 1_000
"""Characters that a path may have."""
_NAME = re.compile(r"(?:[^\s.\[\]{}()'\"$@*,?!=<>\\]|\\.)+")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_SPAN = re.compile(r"(-?[0-9]{1,9})?(?:(:)(-?[0-9]{1,9})?(?::([0-9]{1,9})?)?)?")
_NUMBER = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?")
_OPERATOR = re.compile(r"==|!=|<=|>=|<|>")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "nil": None}


class Span(NamedTuple):
    """An index (`single`), or from where to where and in which steps."""

    start: int | None
    stop: int | None
    step: int | None
    single: bool


class Unreadable(Exception):
    """A path that can't be read. `place`: the character, from 1; `message`: what was expected there."""

    def __init__(self, place: int, message: str) -> None:
        """Keep the place."""
        super().__init__(place, message)
        self.place, self.message = place, message

    def __str__(self) -> str:
        """Read as the end of a sentence."""
        return f"can't be read at character {self.place}: {self.message}"


class PathReader:
    """A path under reading, character by character."""

    def __init__(self, text: str) -> None:
        """Begin. Raises Unreadable: it is empty or too long."""
        self._text, self._at = text.strip(), 0
        if len(self._text) > LONGEST:
            raise Unreadable(LONGEST + 1, f"a path has at most {LONGEST} characters")
        if not self._text:
            raise self.expected("a path such as {.status.replicas}")

    @property
    def ended(self) -> bool:
        """Whether all is read."""
        return self._at >= len(self._text)

    def expected(self, what: str) -> Unreadable:
        """Return the error of not finding something here."""
        seen = f"found {self._text[self._at]!r}" if not self.ended else "it ends here"
        return Unreadable(self._at + 1, f"expected {what}; {seen}")

    def at(self, *texts: str) -> bool:
        """Whether one of these comes next; the empty one: the end."""
        return any(self._text.startswith(text, self._at) if text else self.ended for text in texts)

    def alone(self, text: str) -> bool:
        """Whether this is all of the path that is left."""
        return re.fullmatch(rf"{re.escape(text)}\s*}}?", self._text[self._at :]) is not None

    def take(self, text: str) -> bool:
        """Go over a text if it comes next."""
        found = self.at(text)
        self._at += len(text) if found else 0
        return found

    def back(self, characters: int) -> None:
        """Go back."""
        self._at -= characters

    def must(self, text: str) -> None:
        """Go over a text that must come next."""
        if not self.take(text):
            raise self.expected(f"`{text}`")

    def spaces(self) -> None:
        """Go over spaces."""
        while self.take(" "):
            pass

    def several(self, one: Callable[[], T]) -> list[T]:
        """Read one or more, with commas between."""
        found = [one()]
        self.spaces()
        while self.take(","):
            self.spaces()
            found.append(one())
            self.spaces()
        return found

    def name(self) -> str:
        """Read a plain name; a backslash takes the next character as it is."""
        if self.at("range", "end") and re.match(r"(?:range\b|end\b)\s*[.\[}]", self._text[self._at :]):
            raise self.expected("a path: templates (`range`, `end`) have no one value")
        return re.sub(r"\\(.)", r"\1", self._match(_NAME, "a name")[0])

    def quoted(self) -> str:
        """Read a quoted text."""
        found = self._match(_QUOTED, "a name in quotes")
        return re.sub(r"\\(.)", r"\1", found[1] if found[1] is not None else found[2])

    def span(self) -> Span:
        """Read `0`, `-1`, `1:3`, `::2`."""
        found = self._match(_SPAN, "an index, a name in quotes, `*` or a filter `?(...)`", empty=False)
        if found[4] == "0":
            raise self.expected("a step of at least 1")
        start, stop, step = (int(each) if each else None for each in (found[1], found[3], found[4]))
        return Span(start, stop, step, not found[2])

    def literal(self) -> Any:
        """Read a value that stands in a filter."""
        if self.at("'", '"'):
            return self.quoted()
        if self.at(*"-0123456789"):
            found = self._match(_NUMBER, "a number")[0]
            return float(found) if "." in found else int(found)
        for word, value in _WORDS.items():
            if self.take(word):
                return value
        raise self.expected("`@`, a text in quotes, a number, true or false")

    def operator(self) -> str:
        """Read a comparison; empty: none follows."""
        found = _OPERATOR.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0]

    def _match(self, pattern: re.Pattern[str], what: str, *, empty: bool = True) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None or (not empty and not found[0]):
            raise self.expected(what)
        self._at = found.end()
        return found
