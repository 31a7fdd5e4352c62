"""What a render child can do, by name. Imported by the fork server, so that a child starts with everything loaded."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from handler.model.errors import ManifestInvalid, Problem
from handler.model.manifest import Manifest
from handler.model.render import Called, places
from handler.model.rollout import KIND
from handler.render import folders
from handler.render.charts.chart_archive import chart_name, unpacked
from handler.render.charts.chart_index import index_entries
from handler.render.charts.chart_lock import lock_entries
from handler.render.document import Document
from handler.render.documents import documents
from handler.render.frames import encode, encode_lines, encode_note
from handler.render.helm.chart_facts import encode_facts
from handler.render.helm.chart_scan import scan_chart
from handler.render.helm.helm_output import read_output
from handler.render.helm.pieces import Piece
from handler.render.jsonnet.evaluation import evaluate, find_imports, read_configuration
from handler.render.jsonnet.gojsonnet import read_program
from handler.render.jsonnet.jsonnet_output import FIX, rollout_of
from handler.render.kustomize.kustomize_output import built, read_kustomizations
from handler.render.lines import lines
from handler.render.located import encode_located, located
from handler.render.nix.nix_output import read_nix
from handler.render.nix.nix_paths import read_paths
from handler.render.objects import objects
from handler.render.sops.data_keys import unwrap
from handler.render.sops.encrypted_file import see
from handler.render.sops.placeholders import stand_in
from handler.render.sops.plain_file import plain
from handler.render.variables.substitution import substitute
from handler.render.walls import read_program_walls, try_walls


def rollout(data: bytes, path: str) -> Iterator[Manifest | Problem]:
    """Yield the Rollout of a file; every mistake instead where it can't be read. What it says is read by `handler.rollout.spec`."""
    found = [item for item in documents(data, path) if isinstance(item, Problem) or item.value is not None]
    problems = [item for item in found if isinstance(item, Problem)]
    wanted = [item for item in found if isinstance(item, Document)]
    if problems:
        yield from problems
    elif len(wanted) != 1:
        seen = f"holds {len(wanted):,} documents" if wanted else "holds no document"
        yield Problem(KIND, f"{seen}; a Rollout stands alone in its file", wanted[1].place() if wanted else path, FIX)
    else:
        yield _one(wanted[0], data)


def _one(document: Document, data: bytes) -> Manifest | Problem:
    found = rollout_of(document.value, document.place())
    if isinstance(found, Problem) and isinstance(document.value, dict):
        return replace(found, place=places(partial(lines, data, document.path), document.place(), [found.subject])[0])
    return found


Function = Callable[[Mapping[str, Any], Sequence[bytes]], Iterable[bytes]]  # (options, parts) -> frames

for _codec in ("utf-8-sig", "unicode_escape"):
    codecs.lookup(_codec)  # Python loads a codec's module when it is first needed; a child may open no file


def render_files(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Render manifest files.

    Options: `places`: the path of each part, in order; `rollout`: that of the Rollout, or empty; `marks`: those of parts that only mark
    their folder; `root`: the rendered path; `called`: a `Called`'s fields.
    """
    files, marks = list(zip(options["places"], parts, strict=True)), options["marks"]
    found = folders.find((path, data) for path, data in files if path != options["rollout"])
    folded = found.problems(Called(**options["called"]), options["root"], [path for path, _ in files])
    ours = [(path, data) for path, data in files if path not in marks and path != options["rollout"] and not found.covers(path)]
    plain = (item for path, data in ours for item in documents(data, path))
    special = (row for path, data in files if path == options["rollout"] for row in rollout(data, path))
    return map(encode, itertools.chain(folded, objects(plain), special))


def find_lines(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Find the lines of a document's fields. Options: `path`: of the one part; `fields`: the path of each in the document."""
    yield encode_lines(lines(parts[0], options["path"], options["fields"]))


def chart_files(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Unpack a chart's archive. Options: `place`: of what names it. Yields each file, or mistakes."""
    try:
        for path, data in unpacked(parts[0], options["place"]).items():
            yield b"F" + path.encode() + b"\0" + data
    except ManifestInvalid as refused:
        yield from map(encode, refused.problems)


def scan(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Look through a Helm chart: see `scan_chart`. Yields its facts, or mistakes."""
    try:
        yield encode_facts(scan_chart(options, parts))
    except ManifestInvalid as refused:
        yield from map(encode, refused.problems)


def read_helm(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Read what helm printed: see `read_output`."""
    for row in read_output(options, parts):
        yield row.encode() if isinstance(row, Piece) else encode_note(row) if isinstance(row, str) else encode(row)


def locate(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Read objects and where their fields stand. Options: `places`: the path of each part; `texts`: see `located`."""
    files = zip(options["places"], parts, strict=True)
    return (encode_located(row) for path, data in files for row in located(data, path, options["texts"]))


FUNCTIONS: Mapping[str, Function] = {
    "file": render_files,
    "lines": find_lines,
    "located": locate,
    "walls": try_walls,
    "program walls": read_program_walls,
    "chart-index": index_entries,
    "chart-lock": lock_entries,
    "kustomizations": read_kustomizations,
    "kustomize": built,
    "chart name": chart_name,
    "chart files": chart_files,
    "chart": scan,
    "helm": read_helm,
    "jsonnet imports": find_imports,
    "jsonnet configuration": read_configuration,
    "jsonnet": evaluate,
    "gojsonnet": read_program,
    "nix paths": read_paths,
    "nix": read_nix,
    "substitute": substitute,
    "encrypted files": see,
    "data keys": unwrap,
    "sops": plain,
    "placeholders": stand_in,
}
