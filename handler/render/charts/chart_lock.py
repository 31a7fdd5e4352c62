"""anneal.lock: which bytes charts from elsewhere must have, written in git.

    charts:
    - url: https://charts.example.com/stable     as the target or Chart.yaml names it
      name: web                                  none for oci://, whose URL ends in it
      range: ^1.2                                what is asked for, where that is a range
      version: 1.2.7
      digest: sha256:…                           of the archive

Law: a lock decides versions by equality of what is asked, never by comparing versions: one that no longer fits is refused, not passed by.
Runs in the render child.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handler.config.value_formats import FORMS
from handler.model.errors import Problem
from handler.model.tree import printable
from handler.render.document import Document
from handler.render.documents import documents
from handler.render.frames import encode

LOCK = "anneal.lock"
MAX_LOCKED = 1000
_FIX = f"let `anneal vendor DIR --lock` write {LOCK}"
_LIST = "charts"
_FIELDS = ("url", "name", "range", "version", "digest")
_NEEDED = ("url", "version", "digest")
LockRow = tuple[str, str, str, str, str, str]
"""url, name, range, version, digest, file:line."""


def lock_entries(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the entries of a lock, or its mistakes. Options: `path`: of the one part."""
    yield from map(_encoded, _listed(parts[0], options["path"]))


def _encoded(row: LockRow | Problem) -> bytes:
    return encode(row) if isinstance(row, Problem) else json.dumps(row).encode()


def _listed(data: bytes, path: str) -> Iterator[LockRow | Problem]:
    """Yield what is read of each entry of the list in the one document of a lock."""
    for document in documents(data, path):
        if isinstance(document, Problem):
            yield document
            continue
        entries = document.value.get(_LIST) if isinstance(document.value, dict) else None
        if entries is not None and not isinstance(entries, list):
            yield Problem(_LIST, "isn't a list", document.place(), _FIX)
            continue
        if len(entries or ()) > MAX_LOCKED:
            yield Problem(_LIST, f"has more than {MAX_LOCKED:,} entries", document.place())
            continue
        for entry in entries or ():
            yield from _locked(entry, document)


def _locked(entry: Any, document: Document) -> Iterator[LockRow | Problem]:
    place = document.place(entry)
    if not isinstance(entry, dict) or not all(isinstance(entry.get(name, ""), str) for name in _FIELDS):
        yield Problem(LOCK, f"an entry is a mapping of texts: {', '.join(_FIELDS)}", place, _FIX)
        return
    unknown = sorted(set(entry) - set(_FIELDS))
    if unknown:
        yield Problem(f"key {printable(unknown[0], 80)}", "isn't known", place, _FIX)
    texts = {name: entry.get(name, "") for name in _FIELDS}
    formats = {
        "url": "ociUrl" if texts["url"].startswith("oci:") else "chartUrl",
        "name": "chartName",
        "range": "chartVersion",
        "version": "chartVersion",
        "digest": "sha256",
    }
    for name, text in texts.items():
        if text or name in _NEEDED:
            wrong = FORMS[formats[name]].complaint(text)
            if wrong:
                yield Problem(name, wrong[0], place, wrong[1] or _FIX)
    yield (texts["url"], texts["name"], texts["range"], texts["version"], texts["digest"], place)
