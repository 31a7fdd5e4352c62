"""Ranges of chart versions as Helm reads them: the rules of Masterminds' semver 3.5, which aren't npm's (`tag_versions`).

Pre-releases count for a whole list of comparators once one of them names any; `,` and blanks both join; `!=`, `~>`, `=>`, `=<` exist;
versions may have a `v` and lack numbers. What versions are compared by is `tag_versions`' own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from handler.model.errors import ChartUnavailable, ConfigInvalid
from handler.model.tree import printable
from handler.source.tag_versions import Order, order_of_parts

_PARTS = r"[0-9A-Za-z-]{1,128}(?:\.[0-9A-Za-z-]{1,128}){0,15}"
_TAIL = rf"(?:-(?P<pre>{_PARTS}))?(?:\+{_PARTS})?"
_NUMBER = r"[0-9]{1,18}"
_VERSION = re.compile(rf"v?({_NUMBER})(?:\.({_NUMBER}))?(?:\.({_NUMBER}))?{_TAIL}")
_EXACT = re.compile(rf"v?{_NUMBER}\.{_NUMBER}\.{_NUMBER}{_TAIL}")
_PARTIAL = rf"v?(?:{_NUMBER}|[xX*])(?:\.(?:{_NUMBER}|[xX*])){{0,2}}{re.sub('[?]P<pre>', '?:', _TAIL)}"
_BETWEEN = re.compile(rf"\s*({_PARTIAL})\s+-\s+({_PARTIAL})\s*")
_ONE = re.compile(rf"[\s,]*(?P<operator>!=|>=|=>|<=|=<|~>|[=><~^]?)\s*v?(?P<numbers>[0-9xX*.]+){_TAIL}(?=[\s,]|\Z)")
_LONGEST = 512


def is_exact(version: str) -> bool:
    """Whether a text names one version, not a range: all three numbers, without an operator."""
    return bool(_EXACT.fullmatch(version))


def order_of_version(text: str) -> Order | None:
    """Return what a version is compared by; numbers that are missing are 0. None: it is none."""
    found = _VERSION.fullmatch(text)
    parts = found["pre"].split(".") if found and found["pre"] else []
    if not found or any(len(part) > 1 and part.isdigit() and part[0] == "0" for part in parts):
        return None
    return int(found[1]), int(found[2] or 0), int(found[3] or 0), order_of_parts(parts)


@dataclass(frozen=True, slots=True)
class _Comparator:
    """`numbers`: how many are written before a wildcard; the rest of `bound` is 0."""

    operator: str
    bound: Order
    numbers: int

    def holds(self, version: Order) -> bool:
        return _HOLDS[self.operator](self, version)

    def alike(self, version: Order, numbers: int) -> bool:
        return version[:numbers] == self.bound[:numbers]


def _equal(one: _Comparator, version: Order) -> bool:
    return _tilde(one, version) if one.numbers < 3 else version == one.bound


def _unequal(one: _Comparator, version: Order) -> bool:
    if one.numbers == 2 and one.alike(version, 2):
        return version[3] != one.bound[3]
    return not one.alike(version, one.numbers) if 0 < one.numbers < 3 else version != one.bound


def _above(one: _Comparator, version: Order) -> bool:
    return version[: one.numbers] > one.bound[: one.numbers] if one.numbers in (1, 2) else version > one.bound


def _at_most(one: _Comparator, version: Order) -> bool:
    numbers = one.numbers or 2  # as Masterminds has it: <=* is 0.0
    return version <= one.bound if numbers == 3 else version[:numbers] <= one.bound[:numbers]


def _tilde(one: _Comparator, version: Order) -> bool:
    if version < one.bound:
        return False
    anything = one.bound[:3] == (0, 0, 0) and one.numbers in (0, 3)  # as Masterminds has it, also for ~0.0.0
    return anything or one.alike(version, min(one.numbers, 2))


def _caret(one: _Comparator, version: Order) -> bool:
    numbers = one.numbers or 3  # as Masterminds has it: ^* is 0.0.0
    first = next((place for place in range(numbers) if one.bound[place]), numbers - 1)
    return version >= one.bound and one.alike(version, first + 1)


_HOLDS: dict[str, Callable[[_Comparator, Order], bool]] = {
    "": _equal,
    "=": _equal,
    "!=": _unequal,
    ">": _above,
    "<": lambda one, version: version < one.bound,
    ">=": lambda one, version: version >= one.bound,
    "=>": lambda one, version: version >= one.bound,
    "<=": _at_most,
    "=<": _at_most,
    "~": _tilde,
    "~>": _tilde,
    "^": _caret,
}


class ChartRange:
    """A range of versions: alternatives, each a list of comparators that all must hold."""

    def __init__(self, text: str) -> None:
        """Raises ConfigInvalid: it isn't a range. Empty: any release."""
        try:
            if len(text) > _LONGEST:
                raise ValueError
            ranges = _BETWEEN.sub(r">=\1, <=\2 ", text)
            self._alternatives = [list(_comparators(each.strip() or "*")) for each in ranges.split("||")]
        except ValueError:
            seen, fix = f"is not a range of versions: {text[:60]}", "write e.g. 1.2.3, ^1.2, 1.x or >=1.2 <2"
            raise ConfigInvalid.of("chart version", seen, fix=fix) from None

    def holds(self, version: Order) -> bool:
        """Return whether a version is in the range."""
        return any(
            (version[3] == (1,) or any(each.bound[3] != (1,) for each in group)) and all(each.holds(version) for each in group)
            for group in self._alternatives
        )

    def highest(self, versions: Iterable[str]) -> str | None:
        """Return the highest version in the range; of equal ones the first. What is no version is passed."""
        best: tuple[Order, str] | None = None
        for text in versions:
            version = order_of_version(text)
            if version and (best is None or version > best[0]) and self.holds(version):
                best = version, text
        return best[1] if best else None


def pick(versions: Collection[str], asked: str, subject: str, where: str) -> str:
    """Return exactly the version that is asked for, else the highest in the range. Raises ChartUnavailable: none is; ConfigInvalid."""
    found = asked if asked and asked in versions else ChartRange(asked).highest(versions)
    if found is None:
        seen = f"none of its {len(versions):,} versions {where} is in {printable(asked, 80) or '*'}"
        raise ChartUnavailable.of(subject, seen, fix="publish one, or ask for another")
    return found


def _comparators(text: str) -> Iterable[_Comparator]:
    at = 0
    while at < len(text):
        found = _ONE.match(text, at)
        if not found:
            raise ValueError(text)
        yield _comparator(found["operator"], found["numbers"].split("."), found["pre"] or "")
        at = found.end()


def _comparator(operator: str, written: list[str], pre: str) -> _Comparator:
    if len(written) > 3 or not all(part in ("x", "X", "*") or part.isdigit() for part in written):
        raise ValueError(written)
    numbers = next((place for place, part in enumerate(written) if not part.isdigit()), len(written))
    values = [int(part) for part in written[:numbers]] + [0] * (3 - numbers)
    return _Comparator(operator, (values[0], values[1], values[2], order_of_parts(pre.split(".") if pre else [])), numbers)
