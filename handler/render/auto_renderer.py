"""Which renderer a directory is meant for: what `type: auto` does, the default of a target.

    Chart.yaml                                            helm
    kustomization.yaml, kustomization.yml, Kustomization  kustomize
    main.jsonnet                                          jsonnet
    kubernixos.nix                                        nix
    anything else                                         files

Law: only the target's path itself is looked at, never what lies below; each look is in the read set, so that a commit which adds or
removes one of these files renders anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from handler.model.advice import advice
from handler.model.errors import AnnealError
from handler.model.render import FILES, Rendered, RenderRequest
from handler.model.tree import DIRECTORY, ReadSet, Tree, printable, resolve_links
from handler.render.file_renderer import directory, normal
from handler.render.folders import CHART, KUSTOMIZATIONS, NIX_MODULE
from handler.render.sandbox import Sandbox

if TYPE_CHECKING:
    from handler.render import Renderer

MAIN = "main.jsonnet"
_MARKS = {CHART: "helm", **dict.fromkeys(KUSTOMIZATIONS, "kustomize"), MAIN: "jsonnet", NIX_MODULE: "nix"}


class AutoRenderer:
    """Lets one of the other renderers do it. `renderers`: their table."""

    def __init__(self, renderers: Mapping[str, Renderer]) -> None:
        self._renderers = renderers

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        """Render by what the path holds. Raises AuthorError for what git must change."""
        name, looked = chosen(tree, request.path)
        try:
            rendered = self._renderers[name].render(tree, request, sandbox)
        except AnnealError as error:
            reads = error.basis.reads and ReadSet.of(dict(error.basis.reads) | looked).paths  # none: it doesn't follow from these alone
            error.basis = replace(error.basis, reads=reads, renderer=name)
            raise
        notes = () if rendered.manifests or name != FILES else _programs(tree, normal(request.path))
        return replace(rendered, reads=ReadSet.of(looked | dict(rendered.reads.paths)), notes=(*rendered.notes, *notes))


def chosen(tree: Tree, path: str) -> tuple[str, dict[str, str]]:
    """Return the name of the renderer that a directory is meant for, and what was looked at. Raises SourceRefused."""
    looked: dict[str, str] = {}
    for mark, name in _MARKS.items():
        resolved = resolve_links(tree, "/".join(part for part in (normal(path), mark) if part))
        looked.update(resolved.looked)
        if resolved.entry is not None and resolved.entry.mode != DIRECTORY:
            return name, looked
    return "file", looked


def _programs(tree: Tree, path: str) -> tuple[str, ...]:
    """Say which programs of jsonnet a directory without any manifest holds: Argo CD would run each, and here one is named."""
    real = directory(tree, path)[0].path
    cut = len(real) + 1 if real else 0
    names = [entry.path[cut:] for entry in tree.walk(real) if entry.path.endswith(".jsonnet") and "/" not in entry.path[cut:]]
    if not names:
        return ()
    shown = ", ".join(printable(name, 80) for name in names[:3]) + (", …" if len(names) > 3 else "")
    return (advice("no manifest is here, and {text} is run by renderer: {type: jsonnet, entrypoint: {yaml}}", shown, names[0]),)
