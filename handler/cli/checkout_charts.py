"""Which charts from elsewhere a chart of a checkout needs, found without the rest of the checkout.

    read      Chart.yaml, Chart.lock, requirements.yaml, requirements.lock and charts/ of the chart      local_tree
    look      charts beside it that it needs, what links in charts/ lead to                              helm_charts
    again     until nothing is new; then as a render does

Law: templates, values and what git ignores are no part of the question, so that they can't fail it; nothing outside of the checkout is
read: the git repository around the chart, else the present directory, or the one that is asked about where it lies elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from handler.cli.checkout_parts import beside, missing
from handler.model.errors import AnnealError, SourceRefused
from handler.model.outside_inputs import ChartReference
from handler.model.tree import LINK, Tree, TreeEntry, link_text, printable
from handler.render.folders import CHART, inside
from handler.render.helm.chart_facts import NEEDING
from handler.render.helm.helm_charts import charts_elsewhere
from handler.render.sandbox import Sandbox
from handler.source.checkout import root_around
from handler.source.local_tree import open_files

_PARTS = (*chain.from_iterable(NEEDING), "charts")


def charts_needed(chart: Path, directory: Path, sandbox: Sandbox) -> tuple[ChartReference, ...]:
    """Return the charts from elsewhere that a render of a chart below a directory fetches: its own, and those of charts beside it.

    Raises SourceRefused: it needs one that can't be had, in the words of a render, or what is read leads out of the checkout;
    ManifestInvalid: an archive in charts/ is refused.
    """
    real, here = chart.resolve(), Path.cwd().resolve()
    root = root_around(chart) or (here if real.is_relative_to(here) else directory.resolve())
    path = "" if real == root else real.relative_to(root).as_posix()
    return charts_elsewhere(_read(root, path, sandbox), path, sandbox)


def _read(root: Path, path: str, sandbox: Sandbox) -> Tree:
    """Read what a chart and the charts beside it that it needs say of charts."""
    seen, todo, parts = {path}, [path], dict[str, Path]()
    while True:
        parts |= {part: root / part for chart in todo for part in _parts(root, chart)}
        tree = _with_links(root, parts)
        found = dict.fromkeys(there for chart in todo for there in _beside(tree, chart, sandbox))
        todo = [there for there in found if there not in seen]
        if not todo:
            return tree
        seen.update(todo)


def _parts(root: Path, chart: str) -> Iterator[str]:
    """Yield what is read of a chart. Raises SourceRefused: it leads out of the checkout."""
    for part in (posixpath.join(chart, name) for name in _PARTS):
        place = root / part
        if os.path.lexists(place):
            if place.is_symlink():
                link_text(TreeEntry(part, LINK, ""), os.fsencode(place.readlink()))  # as git has it: no absolute one
            if not place.resolve().is_relative_to(root):
                raise SourceRefused.of(printable(part), "leads out of the repository", fix="put what it leads to where the link is")
            yield part


def _beside(tree: Tree, chart: str, sandbox: Sandbox) -> Iterator[str]:
    with contextlib.suppress(AnnealError):  # the render of it says so
        yield from (there for each in missing(tree, chart, sandbox) if (there := beside(chart, each)) is not None)


def _with_links(root: Path, parts: dict[str, Path]) -> Tree:
    """Read these parts, and add to them what links in them lead to."""
    while True:
        tree = open_files(parts)
        links = [entry for entry in tree.walk("") if entry.mode == LINK]
        new = {part for link in links for part in _led_to(root, tree, link)} - parts.keys()
        if not new:
            return tree
        parts |= {part: root / part for part in new}


def _led_to(root: Path, tree: Tree, link: TreeEntry) -> Iterator[str]:
    """Yield what is read because of a link; nothing where the render refuses it."""
    with contextlib.suppress(AnnealError):
        text = link_text(link, tree.blobs([link.oid])[link.oid])
        path = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), text))
        real = (root / path).resolve()
        if path == "." or path.startswith("../") or inside(link.path, path) or not real.is_relative_to(root) or not real.exists():
            return
        yield from _parts(root, path) if (real / CHART).is_file() else (path,)
