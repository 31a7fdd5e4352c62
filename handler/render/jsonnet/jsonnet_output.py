"""What a jsonnet program made -> objects, and how a Rollout may call them. Runs in the render child.

    {objects: {key: manifest}, rollout: {…}}   as Locutus takes it: by their keys
    a manifest, a list of them, a List         by their kind and name
    anything deeper                            a tree, as Tanka's and kube-prometheus': by the path of keys, `grafana/deployment`

Law: whatever it is, the result is objects and mistakes, each with its path in the output. Null stands for nothing, as in Tanka.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from handler.model.errors import Problem
from handler.model.manifest import Manifest
from handler.model.rollout import API_VERSION, KIND
from handler.model.tree import printable
from handler.render.document import MAX_DEPTH, Document
from handler.render.documents import judge
from handler.render.folders import IGNORE_FILE
from handler.render.frames import Row, decode, encode
from handler.render.jsonnet.jsonnet_errors import pointer
from handler.render.objects import objects, type_name
from handler.render.scalars import number

_EXACT = 16  # digits from which on a double isn't every whole number
_LONGEST = 1e21  # from here on Go writes an exponent
_LOCUTUS = frozenset({"objects", "rollout"})
_TANKA = "tanka.dev/"
_NAMING = ("apiVersion", "kind")
_HIDE = "hide the field (name:: …) if it isn't for the cluster"

_DEEP, _ESCAPED = b"\n" + b" " * (3 * MAX_DEPTH), b"\\ud"
"""What a text has that is nested too deep, or holds half a surrogate pair: engines indent each level by three spaces or four."""

Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class OutputDocument(Document):
    """A value of the output. `steps`: its path there, which stands in the place of a line."""

    steps: Steps = ()

    def place(self, part: object = None) -> str:  # noqa: ARG002 - a List's items have its place
        """Return the entrypoint and the path in the output."""
        return f"{self.path}:{pointer(self.steps)}"


@dataclass(frozen=True, slots=True)
class OutputKey:
    """How a Rollout may call the objects that follow; empty: by what they are."""

    text: str


@dataclass(frozen=True, slots=True)
class OutputRollout:
    """The Rollout that a program made."""

    document: Manifest


OutputRow = OutputKey | OutputRollout | Row


def read_output(made: bytes, entrypoint: str, *, given: bool) -> Iterator[OutputRow]:
    """Yield the objects of an output, each after its key, its Rollout, or every mistake. `given`: the target names a Rollout's file."""
    try:
        value = json.loads(made, parse_int=_whole, parse_float=_float, parse_constant=_float)
        if _DEEP in made or _ESCAPED in made:
            judge(value)
    except RecursionError:
        yield Problem("output", f"is nested deeper than {MAX_DEPTH} levels", entrypoint)
    except ValueError:
        yield Problem("output", "isn't JSON: it holds half of a surrogate pair, or a number that JSON can't say", entrypoint)
    else:
        if isinstance(value, dict) and isinstance(value.get("objects"), dict) and value.keys() <= _LOCUTUS:
            yield from _objects(entrypoint, value["objects"], ("objects",), 1)
            yield from _rollout(entrypoint, value.get("rollout"), given=given)
        else:
            yield from _objects(entrypoint, value, (), -1 if _is_manifest(value) or isinstance(value, list) else 0)


def _whole(text: str) -> int | float:
    """Return the double that jsonnet meant: engines print different digits of large ones."""
    return int(text) if len(text) < _EXACT else _float(text)


def _float(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _LONGEST else number(value)


def _objects(entrypoint: str, value: Any, steps: Steps, skipped: int) -> Iterator[OutputRow]:
    """Yield the objects of a tree. `skipped`: steps of paths that keys leave out; -1: objects have no such keys."""
    seen: list[OutputDocument] = []

    def leaves() -> Iterator[OutputDocument | Problem]:
        for leaf in _leaves(entrypoint, value, steps):
            if isinstance(leaf, OutputDocument):
                seen[:] = [leaf]
            yield leaf

    named: OutputDocument | None = None
    for row in objects(leaves()):
        if isinstance(row, Manifest) and seen[0] is not named and skipped >= 0:
            named = seen[0]
            yield OutputKey("/".join(map(str, named.steps[skipped:])))
        yield replace(row, fix=_HIDE) if isinstance(row, Problem) and IGNORE_FILE in row.fix else row


def _leaves(entrypoint: str, value: Any, steps: Steps) -> Iterator[OutputDocument | Problem]:
    if value is None:
        return
    if _is_manifest(value) and value.get("kind") == "Environment" and str(value.get("apiVersion")).startswith(_TANKA):
        seen = "is an environment of Tanka, which no cluster takes; its objects are in its `data`"
        fix = f"render those: an entrypoint of (import '{posixpath.basename(entrypoint)}').data; and write its namespace for the target"
        yield Problem(printable(pointer(steps)), seen, entrypoint, fix)
    elif _is_manifest(value):
        yield OutputDocument(entrypoint, 0, value, steps=steps)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(entrypoint, each, (*steps, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _leaves(entrypoint, each, (*steps, index))
    else:
        seen = f"is {type_name(value)}, where a Kubernetes object, a list or a tree of them is expected"
        yield Problem(printable(pointer(steps)), seen, entrypoint, _HIDE)


def _is_manifest(value: Any) -> bool:
    """Whether a mapping is meant as an object: one with both names of its type, or with one of them and metadata."""
    if not isinstance(value, dict):
        return False
    names = sum(isinstance(value.get(name), str) for name in _NAMING)
    return names == 2 or (names == 1 and isinstance(value.get("metadata"), dict))


def _rollout(entrypoint: str, body: Any, *, given: bool) -> Iterator[OutputRollout | Problem]:
    place = f"{entrypoint}:$.rollout"
    if body is not None and given:
        fix = "remove `rollout` of the target, or the field from the output: rollout:: …"
        yield Problem("$.rollout", "is a second Rollout: the target names a file of one", place, fix)
    elif body is not None:
        found = rollout_of(body, place)
        yield replace(found, subject=f"$.rollout {found.subject}") if isinstance(found, Problem) else OutputRollout(found)


# --- on the pipe
def encode_output(made: bytes, entrypoint: str, *, given: bool) -> Iterator[bytes]:
    """Yield the frames of an output: see `read_output`."""
    for row in read_output(made, entrypoint, given=given):
        if isinstance(row, OutputKey):
            yield b"K" + json.dumps(row.text).encode()
        else:
            yield b"R" + encode(row.document) if isinstance(row, OutputRollout) else encode(row)


def decode_output(frame: bytes) -> OutputRow:
    """Read one object, mistake, key or Rollout. Raises ValueError: the frame is none of them."""
    if frame[:1] == b"R":
        found = decode(frame[1:])
        if isinstance(found, Manifest):
            return OutputRollout(found)
    if frame[:1] == b"K":
        text = json.loads(frame[1:])
        if isinstance(text, str):
            return OutputKey(text)
    return decode(frame)


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
