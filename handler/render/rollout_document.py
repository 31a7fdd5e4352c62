"""A value -> the Rollout that it is, or what is wrong with it. Runs in the render child."""

from __future__ import annotations

from typing import Any

from handler.model.errors import Problem
from handler.model.manifest import Manifest
from handler.model.rollout import API_VERSION, KIND
from handler.model.tree import printable

FIX = f"write one document of kind: {KIND}, apiVersion: {API_VERSION}"


def rollout_of(body: Any, place: str) -> Manifest | Problem:
    """Return a Rollout, or its mistake, whose subject is the field. What it says is read by `handler.rollout.spec`."""
    if not isinstance(body, dict):
        return Problem("document", "is no Rollout but a list or a plain value", place, FIX)
    kind = body.get("kind")
    if kind != KIND:
        seen = printable(kind, 80) if isinstance(kind, str) and kind else "missing"
        return Problem("kind", f"is {seen}, not {KIND}", place, FIX)
    if not isinstance(body.get("apiVersion"), str):
        return Problem("apiVersion", "is missing", place, FIX)
    if not isinstance(body.get("metadata") or {}, dict):
        return Problem("metadata", "isn't a mapping", place, "write metadata: {name: …}")
    return Manifest.of({**body, "metadata": body.get("metadata") or {}}, place)
