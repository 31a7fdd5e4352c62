"""The Secrets that a program is given, as its configuration or in the list of a resource, and the same without what they say."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any


def secrets_of(found: Any) -> list[Mapping[str, Any]]:
    """Return the Secrets among JSON: an object, or a list of objects."""
    documents = found if isinstance(found, list) else [found]
    return [each for each in documents if isinstance(each, Mapping) and (each.get("apiVersion"), each.get("kind")) == ("v1", "Secret")]


def without_values(found: Any, word: str) -> Any:
    """Return such JSON with a word in place of each value of a Secret."""
    if isinstance(found, list):
        return [without_values(each, word) for each in found]
    if not secrets_of(found):
        return found
    said = {"data": base64.b64encode(word.encode()).decode(), "stringData": word}
    values = {name: dict.fromkeys(found[name], text) for name, text in said.items() if isinstance(found.get(name), Mapping)}
    return {**found, **values}
