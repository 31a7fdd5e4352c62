"""Strict reading of a verified JSON body. Python's reader accepts much that no provider sends; here it is `BadPayload`.

Refused: other encodings than UTF-8, NaN, Infinity and 1e999, integers of more than 20 digits, duplicate keys, lone surrogates, deep
nesting, more than 500,000 values, anything but an object on top, and a field of another type than expected; a missing one is empty.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from handler.model.errors import BadPayload
from handler.model.event import RefChange

MAX_DIGITS = 20
MAX_URL = 2048
MAX_REF = 1024
MAX_NAME = 256
MAX_DEPTH = 100  # no host nests deeper than 10; Python's own limit is another in each version
MAX_NUMBER = 10**9 - 1  # of a pull request: no host has come that far
MAX_CHANGES = 1000  # refs of one push that are listed; of more an Event only says that there were
MAX_VALUES = 500_000
"""Commas and opening brackets of a body; a git host's has some 30 of them a KiB. Each `{}` is 64 bytes in memory, each `{"":[]}` 300."""
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_EVENT = re.compile(r"[a-z0-9_.:-]{1,128}")
_REF = re.compile(r"refs(?:/[^\x00-\x20\x7f~^:?*\[\\/]+)+")  # git check-ref-format, as far as one character can tell


def refuse(message: str) -> NoReturn:
    """Raise BadPayload with a short reason."""
    raise BadPayload.of("payload", message)


def read(body: bytes) -> dict[str, Any]:
    """Return the object in a body, or raise BadPayload."""
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
        refuse("too many values")
    try:
        document = json.loads(body.decode(), parse_constant=_constant, parse_float=_finite, parse_int=_integer, object_pairs_hook=_unique)
        # Lone surrogates pass the reader and fail much later, when they are written: find them here.
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeError:
        refuse("text that is not UTF-8")
    except RecursionError:
        refuse("nested too deeply")
    except ValueError as error:
        refuse(f"not JSON: {error}"[:200])
    if not isinstance(document, dict):
        refuse("not a JSON object")
    if _deeper(document, MAX_DEPTH):
        refuse("nested too deeply")
    return document


def _deeper(document: dict[str, Any], most: int) -> bool:
    """Look through a document level by level: recursion would end where it must not."""
    level: list[Any] = [document]
    for _ in range(most):
        below = (each.values() if isinstance(each, dict) else each for each in level)
        level = [value for values in below for value in values if isinstance(value, dict | list)]
        if not level:
            return False
    return True


def _constant(name: str) -> NoReturn:
    refuse(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        refuse("a number too large")
    return number


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        refuse("a number too large")
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        refuse("a key occurs twice")
    return found


def section(document: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an object of the document; missing or null: an empty one."""
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        refuse(f"{key} is not an object")
    return value


def text(document: dict[str, Any], key: str, limit: int = MAX_NAME) -> str:
    """Return a string of the document; missing or null: empty."""
    value = document.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        refuse(f"{key} is not a string")
    if len(value) > limit:
        refuse(f"{key} is longer than {limit} characters")
    return value


def actor(document: dict[str, Any], *keys: str) -> str:
    """Return the author of the push, from the first of these keys that has it, cut: it is only recorded."""
    names = (text(document, key, sys.maxsize) for key in keys)
    return next((name[:MAX_NAME] for name in names if name), "")


def flag(document: dict[str, Any], key: str) -> bool:
    """Return a boolean of the document; missing: false."""
    value = document.get(key, False)
    if not isinstance(value, bool):
        refuse(f"{key} is not true or false")
    return value


def number(document: dict[str, Any], key: str, most: int = MAX_NUMBER) -> int:
    """Return a number from 1 on that a document must have: of a pull request, or of a comment."""
    value = document.get(key)
    if type(value) is not int or not 1 <= value <= most:
        refuse(f"{key} is missing or no number from 1 to {most}")
    return value


def sha(document: dict[str, Any], key: str) -> str:
    """Return an object id of the document, empty when it is missing or all zeros (git's way to say: none)."""
    value = text(document, key)
    if value and not _SHA.fullmatch(value):
        refuse(f"{key} is not a commit id")
    return value if value.strip("0") else ""


def commit_after(document: dict[str, Any], pushed: str) -> str:
    """Return the commit that a ref is at now: `after` of an annotated tag is the tag object, its commit is `head_commit`."""
    after = sha(document, "after")
    return sha(section(document, "head_commit"), "id") or after if pushed.startswith("refs/tags/") else after


def gone(document: dict[str, Any], key: str = "after") -> bool:
    """Say whether an object id is all zeros: the ref was deleted. A missing one says nothing."""
    value = text(document, key)
    return bool(value) and not value.strip("0")


def ref(document: dict[str, Any], key: str = "ref") -> str:
    """Return the full ref name, which a push always has."""
    value = text(document, key, MAX_REF)
    if not _REF.fullmatch(value):
        refuse(f"{key} is not a full ref name")
    return value


def event_name(value: str, place: str) -> str:
    """Return the name of an event; `place` is where it stands."""
    if not _EVENT.fullmatch(value):
        refuse(f"{place} is missing or no event name")
    return value


def unasked(name: str) -> str:
    """Return the note of an event that isn't a push."""
    return f"{name} events ask for nothing"


def items(document: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return a list of objects of the document; missing or null: an empty one."""
    value = document.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        refuse(f"{key} is not a list of objects")
    return value


def changes(document: dict[str, Any], key: str, one: Callable[[dict[str, Any]], RefChange | None]) -> tuple[tuple[RefChange, ...], bool]:
    """Return the refs of a list, as `one` reads each (None: it isn't shown which), and whether there are more than are returned."""
    listed = items(document, key)
    found = tuple(change for item in listed[:MAX_CHANGES] if (change := one(item)))
    return found, len(listed) > len(found)


def spellings(repository: dict[str, Any], keys: Iterable[str]) -> tuple[str, ...]:
    """Return the URLs that a repository has under these keys."""
    return tuple(found for key in keys if (found := text(repository, key, MAX_URL)))


def urls(*found: str) -> tuple[str, ...]:
    """Return the spellings of a repository, each once; a push without any is refused."""
    several = tuple(dict.fromkeys(url for url in found if url))
    if not several:
        refuse("names no repository")
    return several
