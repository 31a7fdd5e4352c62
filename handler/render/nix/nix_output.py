"""What nix printed -> objects, each with the line where its definition stands. Runs in the render child, after the program.

Law: it is as untrusted as the modules. An object that names the directory it was evaluated in is refused: the next render has another.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from handler.model.errors import Problem
from handler.model.manifest import Manifest
from handler.model.tree import MAX_PATH, printable
from handler.render import scalars
from handler.render.document import MAX_BYTES, MAX_DEPTH, Document
from handler.render.documents import documents
from handler.render.folders import IGNORE_FILE
from handler.render.frames import Row, decode_noted, encode, encode_note
from handler.render.nix.nix_errors import NixPlaces, explain, notes
from handler.render.objects import objects

MAX_SERVER = 2_000
_CHECKSUM = re.compile(r"[0-9a-f]{62}")
_JSON = "nix.json"  # by this name it is read as JSON; every mistake gets the place of its module
_STORE = b"/nix/store/"
_NO_PATH = (
    'write the path itself where its content is meant (builtins.readFile ./x), or its name in the repository as text ("config/x"); '
    "toString ./x is the directory of one evaluation"
)


@dataclass(frozen=True, slots=True)
class NixFacts:
    """What a configuration says beside its objects. `checksum`: of its manifests; `server`: whose they are, empty: any API server's."""

    checksum: str
    server: str


def read_nix(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Read what nix said.

    Options: `exit_code`, `home`: the program's; `places`: a `NixPlaces`' fields but its home; `trace`: mistakes show how nix came there.
    """
    output, errors = parts
    places = NixPlaces(options["home"], **options["places"])
    said = errors.decode(errors="replace")
    if options["exit_code"]:
        yield encode(explain(said, places, trace=options["trace"]))
        return
    found = _parsed(output)
    if found is None:
        yield encode(Problem("nix", "printed what isn't the result of an evaluation"))
        return
    yield b"K" + json.dumps([found["checksum"], found["server"]]).encode()
    for row in objects(row for item in found["items"] for row in _documents(item, places)):
        yield encode(_advised(row) if isinstance(row, Problem) else row)
        if isinstance(row, Manifest) and _STORE in row.raw:
            yield encode_note(f"{row.identity} holds a path of the Nix store, where nothing is put here")
    yield from map(encode_note, notes(said, places))


def _advised(row: Problem) -> Problem:
    """Return a mistake of an object with advice that holds for Nix."""
    if row.fix.startswith("quote it"):
        return replace(row, fix='write it as text: "3", or toString value')
    return replace(row, fix="") if IGNORE_FILE in row.fix else row


def _parsed(output: bytes) -> dict[str, Any] | None:
    """Return what eval.nix makes; what a module prints in its place isn't believed."""
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        return None
    match found:
        case {"checksum": str(), "server": str(), "items": [*items]} if all(map(_is_item, items)):
            return {"checksum": found["checksum"], "server": found["server"], "items": items}
    return None


def _is_item(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("object"), str) and isinstance(item.get("file"), str)


def _documents(item: Mapping[str, Any], places: NixPlaces) -> Iterator[Document | Problem]:
    path, line = _place(item, places)
    if places.home in item["object"]:
        yield Problem("document", "holds the path of the directory that it was evaluated in", f"{path}:{line}", _NO_PATH)
        return
    for found in _read(item["object"]):
        yield replace(found, place=f"{path}:{line}") if isinstance(found, Problem) else Document(path, line, found.value)


def _read(text: str) -> Iterator[Document | Problem]:
    """Read one object: at once where it can't be nested too deeply, else, and where that fails, as JSON of git is read."""
    if len(text) <= MAX_BYTES and text.count("{") + text.count("[") <= MAX_DEPTH:
        with contextlib.suppress(ValueError):
            text.encode()  # half of a surrogate pair is no character
            yield Document("", 1, json.loads(text, parse_float=_number, parse_constant=_number))
            return
    yield from documents(text.encode("utf-8", "surrogatepass"), _JSON)


def _number(text: str) -> int | float:
    return scalars.number(float(text))


def _place(item: Mapping[str, Any], places: NixPlaces) -> tuple[str, int]:
    """Return where an object is written; where nix doesn't know that, the file of the module that defines it."""
    match item.get("at"):
        case {"file": str(file), "line": int(line)} if path := places.in_tree(file):
            return printable(path, MAX_PATH), line
    return printable(places.in_tree(item["file"]), MAX_PATH) or places.directory or ".", 1


def decode_nix(frame: bytes) -> Row | NixFacts | str:
    """Read one object, mistake or note, or the facts. Raises ValueError: the frame is neither."""
    if frame[:1] != b"K":
        return decode_noted(frame)
    match json.loads(frame[1:]):
        case [str(checksum), str(server)] if _CHECKSUM.fullmatch(checksum) and server.isprintable() and len(server) <= MAX_SERVER:
            return NixFacts(checksum, server)
    raise ValueError("no facts")
