"""The kustomizations of a checkout, read in a child: what `anneal vendor` takes into the repository, or locks."""

from __future__ import annotations

from pathlib import Path

from handler.model.tree import printable
from handler.render.folders import KUSTOMIZATIONS
from handler.render.kustomization import Mentions
from handler.render.kustomize_closure import BUILT, decode_row
from handler.render.sandbox import Sandbox


def kustomizations(directory: Path, sandbox: Sandbox) -> list[tuple[Path, Mentions]]:
    """Return what each kustomization below a directory names, links not followed; one that can't be read names nothing."""
    files = sorted(path for path in directory.rglob("*") if path.name in KUSTOMIZATIONS and path.is_file() and not path.is_symlink())
    files = [path for path in files if ".git" not in path.parts]
    if not files:
        return []
    places = [printable(str(path)) for path in files]
    options = {"places": places, "roles": [BUILT] * len(files), "root": -1}
    rows = sandbox.run("kustomizations", options, [path.read_bytes() for path in files], decode_row)
    return [(files[row[0]], row[1]) for row in rows if isinstance(row, tuple) and 0 <= row[0] < len(files)]
