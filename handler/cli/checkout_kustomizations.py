"""The kustomizations of a checkout, read in a child: what `anneal vendor` takes into the repository, or locks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from handler.model.tree import printable
from handler.render.folders import KUSTOMIZATIONS
from handler.render.kustomize.kustomization import Mentions
from handler.render.kustomize.kustomize_closure import BUILT, decode_row
from handler.render.sandbox import Sandbox


def files_below(directory: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield the files of these names below a directory, those above others first; links aren't followed, and `.git` isn't read."""
    for folder, folders, files in os.walk(directory):
        folders[:] = sorted(name for name in folders if name != ".git")
        yield from (path for name in names if name in files and (path := Path(folder, name)).is_file() and not path.is_symlink())


def kustomizations(directory: Path, sandbox: Sandbox) -> list[tuple[Path, Mentions]]:
    """Return what each kustomization below a directory names, links not followed; one that can't be read names nothing."""
    files = list(files_below(directory, KUSTOMIZATIONS))
    if not files:
        return []
    places = [printable(str(path)) for path in files]
    options = {"places": places, "roles": [BUILT] * len(files), "root": -1}
    rows = sandbox.run("kustomizations", options, [path.read_bytes() for path in files], decode_row)
    return [(files[row[0]], row[1]) for row in rows if isinstance(row, tuple) and 0 <= row[0] < len(files)]
