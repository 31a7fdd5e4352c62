"""What nix printed -> objects, each with the line where its definition stands. Runs in the render child, after the program.

Law: it is as untrusted as the modules. An object that names the directory it was evaluated in is refused: the next render has another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from handler.model.errors import Problem
from handler.model.tree import MAX_PATH, printable
from handler.render.document import Document
from handler.render.documents import documents
from handler.render.frames import Row, decode_noted, encode, encode_note
from handler.render.nix.nix_errors import NixPlaces, explain, notes
from handler.render.objects import objects

MAX_SERVER = 2_000
_CHECKSUM = re.compile(r"[0-9a-f]{62}")
_JSON = "nix.json"  # by this name it is read as JSON; every mistake gets the place of its module
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
    files = [path for each in found["files"] if (path := places.in_tree(each))]
    yield from map(encode, objects(row for item in found["items"] for row in _documents(item, places, files)))
    yield from map(encode_note, notes(said, places))


def _parsed(output: bytes) -> dict[str, Any] | None:
    """Return what eval.nix makes; what a module prints in its place isn't believed."""
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        return None
    match found:
        case {"checksum": str(), "server": str(), "files": [*files], "items": [*items]} if all(isinstance(each, str) for each in files):
            return found if all(isinstance(each, dict) and isinstance(each.get("object"), str) for each in items) else None
    return None


def _documents(item: Mapping[str, Any], places: NixPlaces, files: Sequence[str]) -> Iterator[Document | Problem]:
    path, line = _place(item.get("at"), places, files)
    if places.home in item["object"]:
        yield Problem("document", "holds the path of the directory that it was evaluated in", f"{path}:{line}", _NO_PATH)
        return
    for found in documents(item["object"].encode(), _JSON):
        yield replace(found, place=f"{path}:{line}") if isinstance(found, Problem) else Document(path, line, found.value)


def _place(at: Any, places: NixPlaces, files: Sequence[str]) -> tuple[str, int]:
    """Return where an object is written; where nix doesn't know that, the first file that defines any."""
    match at:
        case {"file": str(file), "line": int(line)} if path := places.in_tree(file):
            return printable(path, MAX_PATH), line
    return printable(files[0], MAX_PATH) if files else places.directory or ".", 1


def decode_nix(frame: bytes) -> Row | NixFacts | str:
    """Read one object, mistake or note, or the facts. Raises ValueError: the frame is neither."""
    if frame[:1] != b"K":
        return decode_noted(frame)
    match json.loads(frame[1:]):
        case [str(checksum), str(server)] if _CHECKSUM.fullmatch(checksum) and server.isprintable() and len(server) <= MAX_SERVER:
            return NixFacts(checksum, server)
    raise ValueError("no facts")
