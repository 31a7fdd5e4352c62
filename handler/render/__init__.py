"""Tree -> declared objects. One file for each renderer, one row each in `RENDERERS`.

    select      which files, through links and ignore files     file_renderer, globs; in the worker, trees only
    sandbox     a child with no rights                          sandbox, conversation | child, functions, seccomp, walls
    read        bytes -> documents, as Go reads them            documents, yamls, scalars; in the child
    check       documents -> objects, all mistakes at once      objects; in the child
    place       where mistakes stand                            lines; in the child
    variables   `${name}` in objects written out, for each      variables/; in the child
    programs    kustomize, helm, nix: run by a child, in walls  kustomize/, helm/, charts/, nix/ | programs/
    jsonnet     evaluated by a library in the child             jsonnet/

Law: what comes from git is parsed in a child only, and every look into the tree is in the read set. A program is run only where Landlock
and seccomp stand around it, unless its target is `weak`; what it says is parsed in the child that ran it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from handler.model.render import Rendered, RenderRequest
from handler.model.tree import Tree
from handler.render.auto_renderer import AutoRenderer
from handler.render.file_renderer import FileRenderer
from handler.render.helm.helm_renderer import HelmRenderer
from handler.render.jsonnet.jsonnet_renderer import JsonnetRenderer
from handler.render.kustomize.kustomize_renderer import KustomizeRenderer
from handler.render.nix.nix_renderer import NixRenderer
from handler.render.programs.program import Program, ProgramLimits
from handler.render.sandbox import Sandbox, SandboxLimits

__all__ = ["RENDERERS", "FileRenderer", "Program", "ProgramLimits", "Renderer", "Sandbox", "SandboxLimits"]


class Renderer(Protocol):
    """Turns a commit into declared objects."""

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        """Return the objects and everything that was read; raises AuthorError for what git must change."""


_BY_NAME: Mapping[str, Renderer] = {
    "file": FileRenderer(),
    "helm": HelmRenderer(),
    "jsonnet": JsonnetRenderer(),
    "kustomize": KustomizeRenderer(),
    "nix": NixRenderer(),
}
RENDERERS: Mapping[str, Renderer] = {"auto": AutoRenderer(_BY_NAME), **_BY_NAME}
