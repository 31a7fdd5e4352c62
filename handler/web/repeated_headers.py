"""What WSGI gets of a header that came several times. Pure.

Law: it is never taken for one that came once. WSGI's own comma is also what parts the groups that a proxy names: a second such header, sent
by a person past a proxy that only adds its own, would add to them.
"""

from __future__ import annotations

from collections.abc import Iterable

_APART = "\x1f"  # no header holds one: a server refuses it


def each_once(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return one value of each header, by names in lower case; the pieces of a cookie belong together (RFC 9113, 8.2.3)."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), []).append(value)
    return {name: ("; " if name == "cookie" else _APART).join(values) for name, values in found.items()}
