r"""Paths into an object in Kubernetes' dialect of JSONPath, such as `{.status.conditions[?(@.type=="Ready")].status}`.

As `kubectl get -o jsonpath` has it, with braces or without: `.key`, `['key']`, `.key\.with\.dots`, `[0]`, `[-1]`, `[0:2]`, `[0,1]`,
`['a','b']`, `[*]`, `.*`, `..key`, and filters that compare with a value or ask whether something is there; no templates.
Law: a path comes from git. Reading it takes time by its length, following it by what is left of an `Effort`, which many paths may share.
https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

MOST = 10_000  # values that a path may find
LOOKS = 200_000  # values that may be looked at on the way, those of filters counted: an object's size alone doesn't bound them
_A_LOOK = 100  # characters that cost as much as a look


class TooMany(Exception):
    """A path finds more values than are compared, or takes too many looks."""


class Spent(TooMany):
    """No look is left."""


@dataclass(slots=True)
class Effort:
    """How many looks are left for all that is compared at once."""

    left: int = LOOKS

    def spend(self, looks: int = 1) -> None:
        """Count what is looked at. Raises Spent."""
        if looks > self.left:
            self.left = 0
            raise Spent
        self.left -= looks

    def weigh(self, value: Any) -> None:
        """Count a value that is compared and written as a whole, by its size. Raises Spent."""
        for each in _descend(value, self):
            texts = (each,) if isinstance(each, str) else each if isinstance(each, Mapping) else ()
            self.spend(1 + sum(len(str(text)) for text in texts) // _A_LOOK)


Found = Iterable[Any]
Part = Callable[[Any, Effort], Found]


@dataclass(frozen=True, slots=True)
class Path:
    """A path that was read."""

    text: str
    parts: tuple[Part, ...]

    def find(self, document: Any, effort: Effort | None = None) -> list[Any]:
        """Return every value that it finds, in the object's order; a part that doesn't fit finds none. Raises TooMany, Spent."""
        return _follow(self.parts, document, effort or Effort())


def _follow(parts: Sequence[Part], document: Any, effort: Effort) -> list[Any]:
    found = [document]
    for part in parts:
        following: list[Any] = []
        for value in found:
            for each in part(value, effort):
                following.append(each)
                effort.spend()
                if len(following) > MOST:
                    raise TooMany
        found = following
    return found


@lru_cache(maxsize=256)
def compiled(text: str) -> Path:
    """Read a path; a repeated one is read once. Raises Unreadable: where it can't be read and what was expected there."""
    reader = PathReader(text)
    parts = tuple(_parts(reader, braced=reader.take("{")))
    if not reader.ended:
        raise reader.expected("the end: one path, no text and no second one")
    return Path(text, parts)


def _parts(reader: PathReader, *, braced: bool) -> Iterator[Part]:
    reader.spaces()
    if reader.take("$") or reader.take("@"):
        yield _self
    elif not reader.at(".", "["):
        yield _key(reader.name())  # kubectl takes `metadata.name`, too
    elif reader.alone("."):
        reader.must(".")
        yield _self  # `{.}` is the object
    descends = 0
    while part := _part(reader, filters=True):
        yield part
        descends += part is _descend
        if descends > 1:
            raise reader.expected("`..` only once in a path")
    reader.spaces()
    if braced:
        reader.must("}")


def _part(reader: PathReader, *, filters: bool) -> Part | None:
    if reader.take(".."):
        if not reader.at("["):
            reader.back(1)  # `..name` is `..` and `.name`
        return _descend  # what follows is asked of each value below
    if reader.take("."):
        return _below if reader.take("*") else _key(reader.name())
    if reader.take("["):
        return _bracket(reader, filters=filters)
    return None


def _bracket(reader: PathReader, *, filters: bool) -> Part:
    reader.spaces()
    if reader.take("?("):
        if not filters:
            raise reader.expected("no filter inside a filter")
        part = _filter(reader)
        reader.must(")")
    elif reader.take("*"):
        part = _below
    elif reader.at("'", '"'):
        part = _any_of([_key(name) for name in reader.several(reader.quoted)])
    else:
        part = _any_of([_slice(each) for each in reader.several(reader.span)])
    reader.spaces()
    reader.must("]")
    return part


def _filter(reader: PathReader) -> Part:
    left = _side(reader)
    operator = reader.operator()
    if not operator:
        return lambda value, effort: (item for item in _looked(value, effort) if left(item, effort))
    right = _side(reader)
    return lambda value, effort: (item for item in _looked(value, effort) if _compares(left(item, effort), operator, right(item, effort)))


def _side(reader: PathReader) -> Callable[[Any, Effort], list[Any]]:
    reader.spaces()
    if not reader.at("@"):
        literal = reader.literal()
        reader.spaces()
        return lambda _item, _effort: [literal]
    reader.must("@")
    parts: list[Part] = []
    while part := _part(reader, filters=False):
        if part is _descend:
            raise reader.expected("no `..` inside a filter")
        parts.append(part)
    reader.spaces()
    return lambda item, effort: _follow(parts, item, effort)


def _compares(left: list[Any], operator: str, right: list[Any]) -> bool:
    """Compare as client-go does: one value with one value; where one is missing nothing holds."""
    if len(left) != 1 or len(right) != 1:
        return False
    if operator in ("==", "!="):
        return same(left[0], right[0]) == (operator == "==")
    return ordered(left[0], operator, right[0])


def _self(value: Any, _effort: Effort) -> Found:
    yield value


def _key(name: str) -> Part:
    def part(value: Any, _effort: Effort) -> Found:
        if isinstance(value, Mapping) and name in value:
            yield value[name]

    return part


def _slice(span: Span) -> Part:
    def part(value: Any, _effort: Effort) -> Found:
        items = _items(value)
        if not span.single:
            yield from items[span.start : span.stop : span.step]
        elif span.start is not None and -len(items) <= span.start < len(items):
            yield items[span.start]

    return part


def _any_of(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    return lambda value, effort: (each for part in parts for each in _or_looked(part, value, effort))


def _or_looked(part: Part, value: Any, effort: Effort) -> Found:
    """Follow one of several alternatives: to find nothing is a look, too."""
    found = False
    for each in part(value, effort):
        found = True
        yield each
    if not found:
        effort.spend()


def _below(value: Any, _effort: Effort | None = None) -> Found:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descend(value: Any, _effort: Effort) -> Found:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += reversed(list(_below(each)))


def _looked(value: Any, effort: Effort) -> Found:
    """Yield a list's items; to be passed over by a filter is a look, too."""
    for item in _items(value):
        effort.spend()
        yield item


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


T = TypeVar("T")
LONGEST = 1_000  # characters that a path may have
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


ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def same(left: Any, right: Any) -> bool:
    """Compare two JSON values: 1 is 1.0, true is no 1, "1" is no 1."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return _family(left) == _family(right) and bool(left == right)


def ordered(left: Any, order: str, right: Any) -> bool:
    """Whether `left < right` and its like: of two numbers, or of two texts by their characters."""
    family = _family(left)
    return family in (float, str) and family == _family(right) and ORDERS[order](left, right)


def _family(value: Any) -> type:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
