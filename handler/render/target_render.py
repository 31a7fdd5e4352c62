"""One render of a target, whatever renders it: the way of a commit from its tree to its objects.

    renderer        tree -> objects                  `RENDERERS`
    with_variables  `${name}` in them written out    variables

Law: what holds for each renderer alike happens here, and no renderer knows of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from handler.model.render import Rendered, RenderRequest
from handler.model.tree import Tree
from handler.render.sandbox import Sandbox
from handler.render.variables.variables import with_variables

if TYPE_CHECKING:
    from handler.render import Renderer


def render_target(renderer: Renderer, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
    """Return the objects of a commit and everything that was read. Raises what the renderer and `with_variables` raise."""
    return with_variables(renderer.render(tree, request, sandbox), request, sandbox)
