r"""Paths into an object in Kubernetes' dialect of JSONPath, such as `{.status.conditions[?(@.type=="Ready")].status}`.

As `kubectl get -o jsonpath` has it, with braces or without: `.key`, `['key']`, `.key\.with\.dots`, `[0]`, `[-1]`, `[0:2]`, `[0,1]`,
`['a','b']`, `[*]`, `.*`, `..key`, and filters that compare with a value or ask whether something is there. Not here: templates (`range`,
text, several paths), which have no one value.

Law: a path comes from git. Reading it takes time by its length, following it by what is left of an `Effort`, which may be shared by many
paths; neither ever fails in another way.
https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from handler.rollout.json_values import ordered, same
from handler.rollout.jsonpath_syntax import LONGEST, PathReader, Span, Unreadable

MOST = 10_000
"""Values that a path may find."""
LOOKS = 200_000
"""Values that may be looked at on the way, those of filters counted: an object's size alone doesn't bound them."""
_A_LOOK = 100
"""Characters that cost as much as a look."""

__all__ = ["LONGEST", "LOOKS", "MOST", "Effort", "Path", "Spent", "TooMany", "Unreadable", "compiled"]


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
    """Read a path; what an alias of YAML repeats a thousand times is read once.

    Raises:
        Unreadable: with the character where it can't be read and what was expected there.

    """
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
    """Read the next part; None: there is none."""
    if reader.take(".."):
        if not reader.at("["):
            reader.back(1)  # `..name` is `..` and `.name`
        return _descend  # what follows is asked of each value below
    if reader.take("."):
        return _all if reader.take("*") else _key(reader.name())
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
        part = _all
    elif reader.at("'", '"'):
        part = _any_of([_key(name) for name in reader.several(reader.quoted)])
    else:
        part = _any_of([_slice(each) for each in reader.several(reader.span)])
    reader.spaces()
    reader.must("]")
    return part


def _filter(reader: PathReader) -> Part:
    """`@.type=="Ready"`, `@.ready`: of a list's items those that it holds for."""
    left = _side(reader)
    operator = reader.operator()
    if not operator:
        return lambda value, effort: (item for item in _looked(value, effort) if left(item, effort))
    right = _side(reader)
    return lambda value, effort: (item for item in _looked(value, effort) if _compares(left(item, effort), operator, right(item, effort)))


def _side(reader: PathReader) -> Callable[[Any, Effort], list[Any]]:
    """One side of a comparison: a path from the item, or a value as it stands."""
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
    """Follow one of several alternatives: to find nothing is a look, too, where hundreds are asked of each of many items."""
    found = False
    for each in part(value, effort):
        found = True
        yield each
    if not found:
        effort.spend()


def _all(value: Any, _effort: Effort) -> Found:
    yield from _below(value)


def _below(value: Any) -> Found:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descend(value: Any, _effort: Effort) -> Found:
    """The value and everything below, parents first."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += reversed(list(_below(each)))


def _looked(value: Any, effort: Effort) -> Found:
    """Return a list's items; to be passed over by a filter is a look, too."""
    for item in _items(value):
        effort.spend()
        yield item


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
