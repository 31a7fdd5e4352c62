"""One render of a target, whatever renders it: the way of a commit from its tree to its objects.

    decrypt         tree -> tree                     what SOPS has encrypted is plain, for a target that lists keys      sops
    renderer        tree -> objects                  `RENDERERS`
    with_variables  `${name}` in them written out    variables/
    labelled        a label on each of them          for a target with `compat`                                  kubernixos_label

Law: what holds for each renderer alike happens here, and no renderer knows of it. What was encrypted is shown by nothing that leaves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from handler.model.errors import AnnealError
from handler.model.names import KUBERNIXOS
from handler.model.render import Rendered, RenderRequest
from handler.model.tree import ReadSet, Tree
from handler.render.kubernixos_label import labelled
from handler.render.masked_errors import hidden, masking
from handler.render.render_tools import find
from handler.render.sandbox import Sandbox, in_memory
from handler.render.sops.decrypted_tree import DecryptedTree
from handler.render.sops.decryptor import TOOL, Decryptor
from handler.render.variables.variables import with_variables

if TYPE_CHECKING:
    from handler.render import Renderer


def render_target(renderer: Renderer, tree: Tree, request: RenderRequest, sandbox: Sandbox, decryptor: Decryptor | None = None) -> Rendered:
    """Return the objects of a commit and everything that was read. Raises what the renderer and `with_variables` raise.

    `decryptor`: None: nothing is decrypted, and what is encrypted is refused.
    """
    if decryptor is None:
        return _finished(renderer.render(tree, request, sandbox), request, sandbox)
    plain = DecryptedTree(tree, decryptor, sandbox, weak=request.weak)
    try:
        with in_memory(lambda: bool(plain.used)):
            made = renderer.render(plain, request, sandbox)
        oids = sorted({oid for oid, _ in plain.used})
        rendered = _finished(replace(made, secrets=(*made.secrets, *_secrets(plain)), encrypted=tuple(oids)), request, sandbox)
    except AnnealError as error:
        if error.basis.reads:
            error.basis = replace(error.basis, reads=ReadSet.of({**dict(error.basis.reads), **_tool(plain)}).paths)
        raise hidden(error, masking(_secrets(plain))) from None
    decryptor.keep(plain.used)
    return _noted(rendered, plain)


def _finished(made: Rendered, request: RenderRequest, sandbox: Sandbox) -> Rendered:
    rendered = with_variables(made, request, sandbox)
    return labelled(rendered) if request.compat == KUBERNIXOS else rendered


def _noted(rendered: Rendered, plain: DecryptedTree) -> Rendered:
    """Add what was decrypted to what a render says of itself; decrypted files are read anew next time, so that their texts are known."""
    if not plain.used:
        return rendered
    mask = masking(_secrets(plain)) if rendered.notes else str
    left_out = sum(file.left_out for file in plain.used.values())
    missing = (f"{left_out} objects are left out: their kind is encrypted, and no placeholder can stand for it",) if left_out else ()
    return replace(
        rendered,
        reads=ReadSet.of({**dict(rendered.reads.paths), **_tool(plain)}),
        files={key: documents for key, documents in rendered.files.items() if key[1] not in rendered.encrypted},
        notes=(*map(mask, rendered.notes), *missing),
    )


def _secrets(plain: DecryptedTree) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for file in plain.used.values() for text in file.hidden))


def _tool(plain: DecryptedTree) -> dict[str, str]:
    """Return the read of sops, where it was run: another one decrypts anew."""
    if not plain.used or plain.stands_in:
        return {}
    tool = find(TOOL)
    return {tool.read: tool.digest}
