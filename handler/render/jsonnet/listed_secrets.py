"""What Secrets say that a program is given, as its configuration or in the list of a resource: what may show in nothing that leaves."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def secret_values(documents: Iterable[Any]) -> tuple[str, ...]:
    """Return the values of the Secrets among objects, and of their items, as they stand there and as text; each once."""
    return tuple(dict.fromkeys(text for each in documents for text in _values(each)))


def values_in(text: bytes | str) -> tuple[str, ...]:
    """Return those of JSON: an object, or a list of objects."""
    found = json.loads(text)
    return secret_values(found if isinstance(found, list) else [found])


def _values(document: Any) -> Iterator[str]:
    if not isinstance(document, Mapping) or (document.get("apiVersion"), document.get("kind")) != ("v1", "Secret"):
        return
    for field in ("data", "stringData"):
        values = document.get(field)
        for value in values.values() if isinstance(values, Mapping) else ():
            yield from _texts(value, encoded=field == "data")


def _texts(value: Any, *, encoded: bool) -> Iterator[str]:
    if not isinstance(value, str) or not value:
        return
    yield value
    if encoded:
        try:
            yield from filter(None, [base64.b64decode(value).decode()])
        except (binascii.Error, ValueError):  # bytes that no text shows
            return
