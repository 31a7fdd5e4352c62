"""The one masking function of field values: whatever shows an object's fields asks here first.

Secrets show nothing but that a value is there or differs; masked are also fields whose name says that they hold a secret, and annotations
in which appliers repeat the whole object.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from handler.model.names import GroupKind, identity_of

MASKED = "***"
_SHOWN = 200  # characters of a value that are shown
_SHORTEST = 4  # characters: without shorter ones a text can't be read
_SEVERAL = ("password", "credential", *(f"{of}{joint}key" for of in ("api", "private") for joint in ("", "-", "_")))
_ONE = ("passwd", "token", "secret")
_WORDS = f"(?:(?:{'|'.join(_SEVERAL)})s?|{'|'.join(_ONE)})"
_TELLING = re.compile(rf"(?:{_WORDS}(?:\[\d+\])?|tokens\[\d+\])\W*$", re.IGNORECASE)
_MENTIONED = re.compile(_WORDS, re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)(?:([^\s/:@\"']*:)(?!\d{1,5}(?:[/\"'\s,;)\]]|$))[^\s\"]+|[^\s/:@\"']{20,})@")
"""User and password of a URL (RFC 3986, 3.2.1), as people write them: unquoted `@` and `/`, a token as the user; no port."""
_TOKEN = re.compile(r"\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*")
"""A JSON web token: of a ServiceAccount, of whom a program has signed in."""
_REPEATING = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "kapp.k14s.io/original",
    "kapp.k14s.io/original-diff",
    "kapp.k14s.io/original-diff-full",
    "objectset.rio.cattle.io/applied",
)
"""Annotations by which appliers remember the whole object."""
_MARKS = tuple(each.encode() for each in (*_SEVERAL, *_ONE, *_REPEATING))
_SECRET_OPEN = ("metadata.labels", "metadata.name", "metadata.namespace", "type", "immutable")
"""The fields of a Secret that may be read; its annotations often repeat its data."""


def shown(kind: GroupKind, path: str, value: Any) -> str:
    """Return a field's value as text, masked if it is sensitive. `path`: `spec.containers[name=web].image`."""
    if value is None:
        return ""
    if is_sensitive(kind, path):
        return MASKED
    text = without_passwords(value if isinstance(value, str) and value else json.dumps(_cleaned(kind, path, value), ensure_ascii=False))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def without_passwords(text: str) -> str:
    """Return a text without the passwords of the URLs in it."""
    return _USERINFO.sub(lambda found: f"{found[1] or ''}{MASKED}@", text) if "://" in text else text


def without_credentials(text: str) -> str:
    """Return a text without JSON web tokens and the passwords of URLs."""
    return without_passwords(_TOKEN.sub(MASKED, text) if "eyJ" in text else text)


def without_given(text: str, values: Iterable[str]) -> str:
    """Return a text without these values, and without the lines of longer ones, as they are, in JSON and in base64.

    Only for a text whose writer was given them: anywhere else what is missing of it would tell who guesses.
    """
    lines = {line.strip() for value in values for line in (value, *value.splitlines())}
    raw = {each for each in lines if len(each) >= _SHORTEST}
    written = {json.dumps(each, ensure_ascii=ascii_only)[1:-1] for each in raw for ascii_only in (True, False)}
    encoded = {base64.b64encode(each.encode()).decode() for each in raw}
    for each in sorted(raw | written | encoded | {each.rstrip("=") for each in encoded}, key=len, reverse=True):
        text = text.replace(each, MASKED)
    return text


def is_sensitive(kind: GroupKind, path: str) -> bool:
    """Whether the field at a path may never be shown."""
    if kind == GroupKind("", "Secret"):
        return not any(path == allowed or path.startswith(f"{allowed}.") for allowed in _SECRET_OPEN)
    return path.endswith(_REPEATING) or bool(_TELLING.search(path.removesuffix(".value")))


def may_be_sensitive(document: bytes) -> bool:
    """Whether an object, as canonical JSON, may have a field that may never be shown, or name a Secret. False is certain."""
    small = document.lower()
    return any(mark in small for mark in _MARKS)


def mentions_secret(text: str) -> bool:
    """Whether a text that repeats fields names one that holds a secret, maybe."""
    return bool(_MENTIONED.search(text))


def sensitive(kind: GroupKind, value: Any, path: str = "", *, named: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield path (without positions in lists) and value of every scalar that may never be shown. `named`: by a secret variable's name."""
    if isinstance(value, dict):
        telling = isinstance(value.get("name"), str) and bool(_TELLING.search(value["name"]))
        for key, item in value.items():
            yield from sensitive(kind, item, f"{path}.{key}" if path else str(key), named=named or (telling and key == "value"))
    elif isinstance(value, list):
        for item in value:
            yield from sensitive(kind, item, path, named=named)
    elif value is not None and (named or is_sensitive(kind, path)):
        yield path, value


def masked(body: dict[str, Any]) -> dict[str, Any]:
    """Return a whole object fit to be shown: the same shape, what is sensitive in it masked."""
    kind = identity_of(body).group_kind
    return {key: value if key in ("apiVersion", "kind") else _member(kind, key, value, body) for key, value in body.items()}


def _cleaned(kind: GroupKind, path: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _member(kind, f"{path}.{key}", item, value) for key, item in value.items()}
    if isinstance(value, list):
        hidden = is_sensitive(kind, path)
        return [MASKED if hidden and not isinstance(item, dict | list) else _cleaned(kind, path, item) for item in value]
    return without_passwords(value) if isinstance(value, str) else value


def _member(kind: GroupKind, path: str, item: Any, parent: dict[str, Any]) -> Any:
    named = path.endswith(".value") and isinstance(parent.get("name"), str) and bool(_TELLING.search(parent["name"]))
    scalar = not isinstance(item, dict | list)
    return MASKED if scalar and (named or is_sensitive(kind, path)) else _cleaned(kind, path, item)
