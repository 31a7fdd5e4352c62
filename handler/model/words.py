"""Numbers of things as people write them. Pure."""

from __future__ import annotations


def many(number_of: int, what: str) -> str:
    """`1 replica`, `3 replicas`."""
    return f"{number_of} {what}{'' if number_of == 1 else 's'}"
