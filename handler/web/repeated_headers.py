"""What WSGI gets of a header that came several times. Pure.

Law: it is never taken for one that came once. WSGI's own comma is also what parts the groups that a proxy names: a second such header, sent
by a person past a proxy that only adds its own, would add to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_APART = "\x1f"  # no header holds one: a server refuses it


def joined(name: str, values: Sequence[str]) -> str:
    """Return one value of several; the pieces of a cookie belong together (RFC 9113, 8.2.3)."""
    return ("; " if name.lower() == "cookie" else _APART).join(values)


def each_once(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return headers of which each name comes once. `headers`: with names in one case."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name, []).append(value)
    return [(name, joined(name, values)) for name, values in found.items()]
