"""What `-f DIR` is built of beside DIR: what of the same checkout its kustomization, chart or program names, or links lead to.

    read      DIR, and what was found so far        local_tree
    look      entries and links that lead further   kustomize_closure, helm_charts, jsonnet_imports, nix_closure
    again     until nothing is new

Law: nothing is read but DIR and what is named, and nothing outside of the checkout: the git repository around DIR, or without one the
present directory.
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterator
from pathlib import Path

from handler.config.renderer_settings import RendererSettings
from handler.model.errors import AnnealError
from handler.model.render import Called
from handler.model.tree import LINK, Tree, resolve_links
from handler.render.auto_renderer import MAIN
from handler.render.folders import CHART, KUSTOMIZATIONS, NIX_MODULE, inside
from handler.render.helm.chart_facts import Dependency
from handler.render.helm.helm_charts import FILE, ChartFiles, below, contents, scan
from handler.render.jsonnet.jsonnet_renderer import absent_imports
from handler.render.kustomize.kustomize_closure import Closure
from handler.render.nix.nix_closure import NixClosure
from handler.render.nix.nixpkgs import NIXPKGS
from handler.render.sandbox import Sandbox
from handler.render.tree_files import TreeFiles
from handler.source.checkout import root_around
from handler.source.local_tree import open_parts


def checkout_of(directory: Path) -> tuple[Path, str] | None:
    """Return the root of the checkout around a directory and the directory's path there.

    None: it is the root, or it holds neither a kustomization, a chart nor a program, so that nothing around it matters.
    """
    if not any((directory / name).is_file() for name in (*KUSTOMIZATIONS, CHART, MAIN, NIX_MODULE)):
        return None
    real, root = directory.resolve(), root_around(directory) or Path.cwd().resolve()
    return (root, real.relative_to(root).as_posix()) if root in real.parents else None


def built_of(root: Path, path: str, sandbox: Sandbox, program: RendererSettings | None = None) -> set[str]:
    """Return what a directory of a checkout needs beside itself, as paths from the root. `program`: options of its jsonnet.

    Raises SourceRefused: it can't be read.
    """
    parts: set[str] = set()
    while True:
        tree, _ = open_parts(root, [path, *parts])
        wanted = (_found(root, each, [path, *parts]) for each in _absent(tree, path, parts, sandbox, program))
        new = {each for each in wanted if each is not None} - parts
        if not new:
            return parts
        parts |= new


def _absent(tree: Tree, path: str, parts: set[str], sandbox: Sandbox, program: RendererSettings | None) -> Iterator[str]:
    """Yield what entries lead to and the tree doesn't hold, and its links."""
    closure = Closure(tree, sandbox, Called(), charts_allowed=True, files=TreeFiles(tree), remote_allowed=True)
    with contextlib.suppress(AnnealError):  # the render says so
        closure.run(path)
    yield from closure.absent
    if program or resolve_links(tree, posixpath.join(path, MAIN)).entry:
        yield from absent_imports(tree, path, program or RendererSettings(), sandbox)
    if tree.lookup(posixpath.join(path, NIX_MODULE)):
        modules = NixClosure(tree, sandbox, TreeFiles(tree), path)
        with contextlib.suppress(AnnealError):  # the same
            modules.run((), ())
        yield from (NIXPKGS, *modules.absent)
    for each in (path, *parts):
        with contextlib.suppress(AnnealError):  # the same
            yield from filter(None, (beside(each, needed) for needed in missing(tree, each, sandbox)))
    yield from (entry.path for entry in tree.walk("") if entry.mode == LINK)


def missing(tree: Tree, path: str, sandbox: Sandbox) -> tuple[Dependency, ...]:
    """Return what the chart at a path needs and its charts/ doesn't hold, as a render finds it; none where there is no chart.

    Raises SourceRefused: it can't be read; ManifestInvalid: an archive in it is refused.
    """
    if resolve_links(tree, posixpath.join(path, CHART)).entry is None:
        return ()
    files = TreeFiles(tree)
    files.add(path)
    return scan(ChartFiles(below(contents(files), path), path), (), sandbox).missing


def beside(path: str, needed: Dependency) -> str | None:
    """Return where in the checkout the chart at a path finds one that it needs; None: it is from elsewhere, or outside of the checkout."""
    found = posixpath.normpath(posixpath.join(path, needed.repository.removeprefix(FILE)))
    if not needed.repository.startswith(FILE) or found.startswith(("..", "/")):
        return None
    return "" if found == "." else found


def _found(root: Path, path: str, parts: list[str]) -> str | None:
    """Return what is to be read for a path: itself, or of one that is a part what its links lead to; None: nothing new, or elsewhere."""
    real = (root / path).resolve()
    if not real.is_relative_to(root) or not real.exists():
        return None
    inner = real.relative_to(root).as_posix()
    new = [each for each in (path, "" if inner == "." else inner) if not any(inside(each, part) for part in parts)]
    return new[0] if new else None
