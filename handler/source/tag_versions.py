"""Which tag is the highest in a range of versions (SemVer 2.0.0; ranges as npm reads them); a version is `1.2.3` or `v1.2.3`.

Pre-releases count only where the range names one of the same three numbers; build metadata has no order.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from handler.model.errors import ConfigInvalid

TAGS = "refs/tags/"
_NUMBER = rb"(0|[1-9][0-9]{0,17})"
_TAG = re.compile(rb"refs/tags/v?%s\.%s\.%s(?:-([0-9A-Za-z.-]{1,128}))?(?:\+[0-9A-Za-z.-]{1,128})?" % (_NUMBER, _NUMBER, _NUMBER))
_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Order = tuple[int, int, int, tuple[Any, ...]]
"""What versions are compared by: a release stands above its pre-releases, their parts are numbers below words (SemVer, 11)."""
Comparator = tuple[Callable[[Any, Any], bool], Order]


class VersionRange:
    """A range of versions: alternatives, each a list of comparators that all must hold."""

    def __init__(self, text: str) -> None:
        """Raises ConfigInvalid: it isn't a range."""
        try:
            self._alternatives = [_comparators(part.strip()) for part in text.split("||")]
        except (ValueError, AttributeError):  # what the library says to text that it can't match
            raise ConfigInvalid.of(
                "revision.semver", f"is not a range of versions: {text[:60]}", fix="write e.g. >=1.2 <2, ^1.2 or 1.x"
            ) from None

    def holds(self, version: Order) -> bool:
        """Return whether a version is in the range. The library forgets the upper bound of `>=1.2.0-rc.1 <1.2.0`."""
        return any(_all_hold(comparators, version) for comparators in self._alternatives)


class HighestTag:
    """Picks the highest tag in a range out of refs that are shown one by one. `name`: the best so far, a full ref name.

    `commit`: the one that it must name, in hex; empty: any.
    """

    prefix = TAGS

    def __init__(self, text: str, commit: str = "") -> None:
        """Raises ConfigInvalid: `text` isn't a range."""
        self.name, self.commit = "", commit.encode()
        self._range = VersionRange(text)
        self._best: tuple[Order, bytes] | None = None

    def better(self, name: bytes) -> bool:
        """Return whether a ref is the best so far; of tags of the same version the last by name wins."""
        version = order_of(name)
        if version is None or (self._best and (version, name) <= self._best) or not self._range.holds(version):
            return False
        self._best, self.name = (version, name), name.decode()
        return True


def overtakes(text: str, tag: str, head: str) -> bool:
    """Say whether a tag, once the host shows it, would be the highest in a range instead of `head`; both are full ref names."""
    highest = HighestTag(text)
    highest.better(head.encode())
    return highest.better(tag.encode(errors="replace"))


def order_of(name: bytes) -> Order | None:
    """Read the version of a tag, given as a full ref name; None: it is none."""
    match = _TAG.fullmatch(name)
    if match is None:
        return None
    parts = match[4].decode().split(".") if match[4] else []
    if any(not part or (part.isdigit() and len(part) > 1 and part[0] == "0") for part in parts):
        return None
    return int(match[1]), int(match[2]), int(match[3]), order_of_parts(parts)


def order_of_parts(parts: list[str]) -> tuple[Any, ...]:
    """Return what the parts of a pre-release are compared by; none: it is a release."""
    return (0, *((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)) if parts else (1,)


def _comparators(text: str) -> list[Comparator]:
    low, dash, high = text.partition(" - ")
    blocks = [f">={low}", f"<={high}"] if dash else text.split()
    from semantic_version import NpmSpec  # noqa: PLC0415 - most targets follow no range

    found = [each for block in blocks for each in NpmSpec.Parser.parse_simple(block)]
    if not found:
        raise ValueError("empty")
    return [(_HOLDS[each.operator], _order_of_version(each.target)) for each in found]


def _order_of_version(version: Any) -> Order:
    return version.major, version.minor, version.patch, order_of_parts(list(version.prerelease))


def _all_hold(comparators: list[Comparator], version: Order) -> bool:
    if not all(holds(version, bound) for holds, bound in comparators):
        return False
    return version[3] == (1,) or any(bound[3] != (1,) and bound[:3] == version[:3] for _, bound in comparators)
