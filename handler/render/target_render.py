"""One render of a target, whatever renders it: the way of a commit from its tree to its objects.

    renderer      tree -> objects      `RENDERERS`
    compat        a label on each of them      `kubernixos_label`

Law: what holds for each renderer alike happens here, and no renderer knows of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from handler.model.names import KUBERNIXOS
from handler.model.render import Rendered, RenderRequest
from handler.model.tree import Tree
from handler.render.kubernixos_label import labelled
from handler.render.sandbox import Sandbox

if TYPE_CHECKING:
    from handler.render import Renderer


def render_target(renderer: Renderer, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
    """Return the objects of a commit and everything that was read. Raises what the renderer raises."""
    rendered = renderer.render(tree, request, sandbox)
    return labelled(rendered) if request.compat == KUBERNIXOS else rendered
