"""The documents of a Rollout's file -> the one Rollout in it, or every mistake. Runs in the render child.

Law: pure, and only what makes it a document of that kind is asked here; what it says is read by `handler.rollout.spec`, which knows the
objects, the actions and the checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from handler.model.errors import Problem
from handler.model.manifest import Manifest
from handler.model.render import places
from handler.model.rollout import API_VERSION, KIND
from handler.model.tree import printable
from handler.render.document import Document
from handler.render.documents import documents
from handler.render.lines import lines

_FIX = f"write one document of kind: {KIND}, apiVersion: {API_VERSION}"


def rollout(data: bytes, path: str) -> Iterator[Manifest | Problem]:
    """Yield the Rollout of a file; every mistake instead where it can't be read."""
    found = [item for item in documents(data, path) if isinstance(item, Problem) or item.value is not None]
    problems = [item for item in found if isinstance(item, Problem)]
    wanted = [item for item in found if isinstance(item, Document)]
    if problems:
        yield from problems
    elif len(wanted) != 1:
        seen = f"holds {len(wanted):,} documents" if wanted else "holds no document"
        yield Problem(KIND, f"{seen}; a Rollout stands alone in its file", wanted[1].place() if wanted else path, _FIX)
    else:
        yield _one(wanted[0], data)


def _one(document: Document, data: bytes) -> Manifest | Problem:
    body, place = document.value, document.place()
    if not isinstance(body, dict):
        return Problem("document", "is no Rollout but a list or a plain value", place, _FIX)
    mistake = _mistake(body)
    if mistake:
        [place] = places(partial(lines, data, document.path), place, [mistake.subject])
        return replace(mistake, place=place)
    return Manifest.of({**body, "metadata": body.get("metadata") or {}}, place)


def _mistake(body: dict[str, Any]) -> Problem | None:
    """Return what keeps a document from being a Rollout, without its place."""
    kind = body.get("kind")
    if kind != KIND:
        return Problem("kind", f"is {printable(kind, 80) if isinstance(kind, str) and kind else 'missing'}, not {KIND}", fix=_FIX)
    if not isinstance(body.get("apiVersion"), str):
        return Problem("apiVersion", "is missing", fix=_FIX)
    if not isinstance(body.get("metadata") or {}, dict):
        return Problem("metadata", "isn't a mapping", fix="write metadata: {name: …}")
    return None
