"""What `-f DIR` is built of beside DIR: directories and files of the same checkout that its kustomization names, or links of it lead to.

    read      DIR, and what was found so far        local_tree
    look      entries and links that lead further   kustomize_closure
    again     until nothing is new

Law: nothing is read but DIR and what is named, and nothing outside of the checkout: the git repository around DIR, or without one the
present directory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from handler.model.errors import AnnealError
from handler.model.render import Called
from handler.model.tree import LINK, Tree, resolve_links
from handler.render.folders import CHART, KUSTOMIZATIONS, inside
from handler.render.kustomize_closure import Closure
from handler.render.sandbox import Sandbox
from handler.render.tree_files import TreeFiles
from handler.source.local_tree import open_parts


def checkout_of(directory: Path) -> tuple[Path, str] | None:
    """Return the root of the checkout around a directory and the directory's path there.

    None: it is the root, or it holds neither a kustomization nor a chart, so that nothing around it matters.
    """
    if not any((directory / name).is_file() for name in (*KUSTOMIZATIONS, CHART)):
        return None
    real, here = directory.resolve(), Path.cwd().resolve()
    around = [each for each in real.parents if (each / ".git").exists()] if not (real / ".git").exists() else [real]
    root = around[0] if around else here
    return (root, real.relative_to(root).as_posix()) if root in real.parents else None


def built_of(root: Path, path: str, sandbox: Sandbox) -> set[str]:
    """Return what a directory of a checkout needs beside itself, as paths from the root. Raises SourceRefused: it can't be read."""
    parts: set[str] = set()
    while True:
        tree, _ = open_parts(root, [path, *parts])
        wanted = (_found(root, each, [path, *parts]) for each in _absent(tree, path, sandbox))
        new = {each for each in wanted if each is not None} - parts
        if not new:
            return parts
        parts |= new


def _absent(tree: Tree, path: str, sandbox: Sandbox) -> Iterator[str]:
    """Yield what entries and links lead to and the tree doesn't hold."""
    closure = Closure(tree, sandbox, Called(), charts_allowed=True, files=TreeFiles(tree), remote_allowed=True)
    with contextlib.suppress(AnnealError):  # the render says so
        closure.run(path)
    yield from closure.absent
    for entry in tree.walk(""):
        if entry.mode == LINK:
            with contextlib.suppress(AnnealError):  # the same
                if resolve_links(tree, entry.path).entry is None:
                    yield entry.path


def _found(root: Path, path: str, parts: list[str]) -> str | None:
    """Return what is to be read for a path that isn't there yet: itself, or what a link of the parts leads to; None: there is nothing."""
    real = (root / path).resolve()
    if not real.exists() or not real.is_relative_to(root):
        return None
    inner = real.relative_to(root)
    return path if not any(inside(path, each) for each in parts) else inner.as_posix() if inner.parts else ""
