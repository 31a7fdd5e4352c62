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

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from handler.model.advice import advice
from handler.model.errors import AnnealError, RenderFailed
from handler.model.render import FILES, Rendered, RenderRequest
from handler.model.tree import DIRECTORY, ReadSet, Tree, printable, resolve_links
from handler.render.file_renderer import directory, normal
from handler.render.folders import CHART, KUSTOMIZATIONS, NIX_MODULE
from handler.render.sandbox import Sandbox

if TYPE_CHECKING:
    from handler.render import Renderer

MAIN = "main.jsonnet"
_PROGRAMS = (".jsonnet", ".libsonnet", f"/{NIX_MODULE}")
_MARKS = {CHART: "helm", **dict.fromkeys(KUSTOMIZATIONS, "kustomize"), MAIN: "jsonnet", NIX_MODULE: "nix"}


class AutoRenderer:
    """Lets one of the other renderers do it. `renderers`: their table."""

    def __init__(self, renderers: Mapping[str, Renderer]) -> None:
        self._renderers = renderers

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        """Render by what the path holds. Raises AuthorError for what git must change: also where a program alone would make objects."""
        name, looked = chosen(tree, request.path)
        try:
            rendered = self._renderers[name].render(tree, request, sandbox)
            if name == FILES and not rendered.manifests and rendered.rollout is None:
                _refuse_programs(tree, request)
        except AnnealError as error:
            reads = error.basis.reads and ReadSet.of(dict(error.basis.reads) | looked).paths  # none: it doesn't follow from these alone
            error.basis = replace(error.basis, reads=reads, renderer=name)
            raise
        return replace(rendered, reads=ReadSet.of(looked | dict(rendered.reads.paths)))


def chosen(tree: Tree, path: str) -> tuple[str, dict[str, str]]:
    """Return the name of the renderer that a directory is meant for, and what was looked at. Raises SourceRefused."""
    looked: dict[str, str] = {}
    for mark, name in _MARKS.items():
        resolved = resolve_links(tree, "/".join(part for part in (normal(path), mark) if part))
        looked.update(resolved.looked)
        if resolved.entry is not None and resolved.entry.mode != DIRECTORY:
            return name, looked
    return "file", looked


def _refuse_programs(tree: Tree, request: RenderRequest) -> None:
    """Refuse a directory that holds nothing but programs: Argo CD would run each of jsonnet's, and here one is named."""
    root = directory(tree, normal(request.path))[0].path
    paths = sorted((entry.path for entry in tree.walk(root) if entry.path.endswith(_PROGRAMS)), key=lambda path: (path.count("/"), path))
    found = [path for path in paths if not path.endswith(".libsonnet")] or paths
    if not found:
        return
    inner = [path.removeprefix(f"{root}/") if root else path for path in found]
    shown = ", ".join(printable(name, 80) for name in inner[:3]) + (", …" if len(inner) > 3 else "")
    if not request.called.in_git:
        place = request.called.place(found[0])
        fix = advice("let it make files that can be applied: jsonnet {path} > {path}", place, f"{place}.json")
    elif inner[0].endswith(".libsonnet"):
        fix = "write the path of the program that imports it"
    elif posixpath.basename(found[0]) in _MARKS:
        fix = advice("write path: {yaml}", posixpath.dirname(found[0]))
    else:
        fix = advice("write renderer: {type: jsonnet, entrypoint: {yaml}}", inner[0])
    meant = advice("{text}; or, if nothing is to be declared: renderer: {type: file}", fix) if request.called.in_git else fix
    raise RenderFailed.of(printable(root, 300) or ".", f"no manifest is here, and {shown} makes some only if it is run", fix=meant)
