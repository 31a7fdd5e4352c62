"""What a render child can do, by name. Imported by the fork server, so that a child starts with everything loaded."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from handler.model.render import Called
from handler.render import folders
from handler.render.documents import documents
from handler.render.frames import encode, encode_lines
from handler.render.lines import lines
from handler.render.objects import objects
from handler.render.rollout import rollout
from handler.render.walls import try_walls

Function = Callable[[Mapping[str, Any], Sequence[bytes]], Iterable[bytes]]
"""(options, parts) -> frames."""

for _codec in ("utf-8-sig", "unicode_escape"):
    codecs.lookup(_codec)  # Python loads a codec's module when it is first needed; a child may open no file


def render_files(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Render manifest files.

    `options["places"]`: the path of each part, in order; `options["rollout"]`: that of the Rollout, or empty; `options["marks"]`: those of
    parts that only mark their folder; `options["root"]`: the rendered path; `options["called"]`: a `Called`'s fields.
    """
    files, marks = list(zip(options["places"], parts, strict=True)), options["marks"]
    found = folders.find((path, data) for path, data in files if path != options["rollout"])
    told = found.problems(Called(**options["called"]), options["root"], [path for path, _ in files])
    ours = [(path, data) for path, data in files if path not in marks and path != options["rollout"] and not found.covers(path)]
    plain = (item for path, data in ours for item in documents(data, path))
    special = (row for path, data in files if path == options["rollout"] for row in rollout(data, path))
    return map(encode, itertools.chain(told, objects(plain), special))


def find_lines(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Find the lines of a document's fields. `options["path"]`: of the one part; `options["fields"]`: the path of each in the document."""
    yield encode_lines(lines(parts[0], options["path"], options["fields"]))


FUNCTIONS: Mapping[str, Function] = {"file": render_files, "lines": find_lines, "walls": try_walls}
