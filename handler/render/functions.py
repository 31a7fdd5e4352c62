"""What a render child can do, by name. Imported by the fork server, so that a child starts with everything loaded."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from handler.render.documents import documents
from handler.render.frames import encode
from handler.render.objects import objects

Function = Callable[[Mapping[str, Any], Sequence[bytes]], Iterable[bytes]]
"""(options, parts) -> frames."""

for _codec in ("utf-8-sig", "unicode_escape"):
    codecs.lookup(_codec)  # Python loads a codec's module when it is first needed; a child may open no file


def render_files(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Render manifest files. `options["places"]`: the path of each part, in order."""
    found = (item for path, data in zip(options["places"], parts, strict=True) for item in documents(data, path))
    return map(encode, objects(found))


FUNCTIONS: Mapping[str, Function] = {"file": render_files}
