"""Regular expressions of key transformations, by RE2: its time is linear in the keys, which users of a cluster choose. Pure.

The library is loaded where there is an expression: other configurations need none.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from handler.model.optional_imports import needed_by


class KeyMatch(Protocol):
    """What of a key an expression has matched."""

    def __getitem__(self, group: int | str, /) -> str | None:
        """Return what a group has matched; None: it took no part. Raises IndexError: there is no such group."""


class KeyRegex(Protocol):
    """An expression that RE2 has compiled."""

    def fullmatch(self, key: str, /) -> KeyMatch | None:
        """Match the whole of a key."""


@lru_cache(100)
def key_regex(text: str) -> KeyRegex:
    """Compile an expression (https://github.com/google/re2/wiki/Syntax). Raises ValueError: it is none, and why."""
    with needed_by("keyTransformations", "scripts/package --config FILE, of a configuration that has them,"):
        import re2  # noqa: PLC0415 - see above
    options = re2.Options()
    options.log_errors = False  # else it writes to stderr itself
    try:
        found: KeyRegex = re2.compile(text, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        raise ValueError(said.decode(errors="replace") if isinstance(said, bytes) else str(said)) from None
    return found
