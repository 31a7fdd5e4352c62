"""One render of a target, whatever renders it: the way of a commit from its tree to its objects.

    decrypt         tree -> tree                     what SOPS has encrypted is plain, for a target that lists keys      sops
    renderer        tree -> objects                  `RENDERERS`
    with_variables  `${name}` in them written out    variables/
    with_hidden     what of them isn't shown         where the renderer was given values that aren't in git              taint
    labelled        a label on each of them          for a target with `compat`                                  set_digest

Law: what holds for each renderer alike happens here, and no renderer knows of it. Where one is given values that aren't in git (of
encrypted files, of Secrets), it renders twice more, with either set of placeholders. What differs is hidden; its words are shown only as
it says them over placeholders, too. No value is looked for in any text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from handler.model.advice import advice
from handler.model.errors import AnnealError, AuthorError, Problem, RenderFailed, ValuesInvalid
from handler.model.manifest import Manifest
from handler.model.names import KUBERNIXOS
from handler.model.render import Rendered, RenderRequest
from handler.model.tree import ReadSet, Tree, printable
from handler.render.jsonnet.listed_secrets import secrets_of, without_values
from handler.render.placeholder_inputs import SecretInputs, charts_of
from handler.render.render_tools import find
from handler.render.sandbox import Sandbox, in_memory
from handler.render.set_digest import labelled
from handler.render.sops.decrypted_tree import DecryptedTree
from handler.render.sops.decryptor import TOOL, Decryptor
from handler.render.taint import with_hidden
from handler.render.variables.variables import PLACEHOLDERS, with_variables

if TYPE_CHECKING:
    from handler.render import Renderer

_SETS = (1, 2)


def render_target(renderer: Renderer, tree: Tree, request: RenderRequest, sandbox: Sandbox, decryptor: Decryptor | None = None) -> Rendered:
    """Return the objects of a commit and everything that was read. Raises what the renderer and `with_variables` raise.

    `decryptor`: None: nothing is decrypted, and what is encrypted is refused.
    """
    render = _Render(renderer, tree, request, sandbox, decryptor)
    try:
        made = render.made()
    except AnnealError as error:
        if error.basis.reads:
            error.basis = replace(error.basis, reads=ReadSet.of({**dict(error.basis.reads), **render.tool()}).paths)
        if isinstance(error, AuthorError | ValuesInvalid) and not isinstance(error, RenderFailed) and error is not render.refused:
            error.args = error.problems = render.told(error.problems)
        raise
    rendered = render.finished(made)
    return labelled(rendered) if request.compat == KUBERNIXOS else rendered


@dataclass(slots=True)
class _Render:
    """One render, or one beside it with placeholders of a set. `number`: which set, 0: the real one."""

    renderer: Renderer
    tree: Tree
    request: RenderRequest
    sandbox: Sandbox
    decryptor: Decryptor | None
    number: int = 0
    inputs: SecretInputs = field(init=False)
    plain: DecryptedTree | None = field(init=False)

    def __post_init__(self) -> None:
        self.inputs = SecretInputs(self.request.outside, self.number, charts_of(self.request.options))
        decryptor = self.decryptor.standing_in(self.number) if self.decryptor and self.number else self.decryptor
        self.plain = DecryptedTree(self.tree, decryptor, self.sandbox, weak=self.request.weak) if decryptor else None

    def made(self) -> Rendered:
        """Return what the renderer makes, with its variables written out: by their own values in each render."""
        request, plain = self.request, self.plain
        asked = replace(request, outside=self.inputs, beside=bool(self.number))
        if self.number and secrets_of(request.configuration):
            asked = replace(asked, configuration=without_values(request.configuration, PLACEHOLDERS[self.number]))
        with in_memory(lambda: bool((plain and plain.used) or (request.configuration and self.given))):
            made = self.renderer.render(plain or self.tree, asked, self.sandbox)
        encrypted = tuple(sorted({oid for oid, _ in plain.used})) if plain else ()
        return with_variables(replace(made, encrypted=encrypted), request, self.sandbox)

    @property
    def refused(self) -> AnnealError | None:
        """Why an encrypted file couldn't be read."""
        return self.plain.refused if self.plain else None

    @property
    def given(self) -> tuple[str, ...]:
        """The values that aren't in git and that the renderer was given, as messages name them; empty: none, or placeholders of them."""
        if self.request.placeholders and self.request.keys_known:
            return ()  # of a pull request
        files = [each.place for each in self.plain.used.values()] if self.plain and not self.plain.stands_in else []
        configured = ["the Secret that configures it"] if secrets_of(self.request.configuration) else []
        return tuple(dict.fromkeys((*files, *self.inputs.given, *configured)))

    def finished(self, made: Rendered) -> Rendered:
        """Return a render with what of it is hidden, and what was decrypted."""
        if not self.given:
            return self._decrypted(made)
        known = {key: found for key, found in made.files.items() if key[1] not in made.encrypted}
        beside: list[Rendered] = []
        for number in _SETS:
            try:
                beside.append(replace(self, request=replace(self.request, known=known), number=number).made())
            except (AuthorError, ValuesInvalid, RenderFailed):  # what it would say of placeholders is no mistake
                continue
        found = with_hidden(_objects(made), [_objects(each) for each in beside], made.unstable)
        notes = [note for note in made.notes if all(note in each.notes for each in beside)] if beside else [self._unknown()]
        count = len(made.manifests)
        rollout = found[-1] if made.rollout else None
        rests = found[count : count + len(made.rests)]
        return self._decrypted(replace(made, manifests=found[:count], rests=rests, rollout=rollout, notes=tuple(notes)))

    def _decrypted(self, made: Rendered) -> Rendered:
        """Add what was decrypted to what a render says of itself; no cache keeps what a decrypted file holds."""
        if self.decryptor and self.plain:
            self.decryptor.keep(self.plain.used)
        if not self.plain or not self.plain.used:
            return made
        left_out = sum(file.left_out for file in self.plain.used.values())
        missing = (f"{left_out} objects are left out: their kind is encrypted, and no placeholder can stand for it",) if left_out else ()
        return replace(
            made,
            reads=ReadSet.of({**dict(made.reads.paths), **self.tool()}),
            files={key: documents for key, documents in made.files.items() if key[1] not in made.encrypted},
            notes=(*made.notes, *missing),
        )

    def told(self, problems: Sequence[Problem]) -> tuple[Problem, ...]:
        """Return what may be shown of a failed render: what is said over placeholders alike, else that it fails by the values alone."""
        if not self.given or self.request.told:
            return tuple(problems)
        try:
            replace(self, number=_SETS[0]).made()
        except (AuthorError, ValuesInvalid) as error:
            return error.problems
        except AnnealError:
            pass
        called, commit = self.request.called, self.tree.commit.sha
        which = [called.name, "--commit", commit] if called.in_git else ["-f", called.directory or "."]
        seen = f"fails with the values of {', '.join(self.given)}, and not without them: what is said of it may hold one, and isn't shown"
        fix = advice("who may see them sees it by: anneal render{words} --show-secrets", which)
        return (Problem(printable(self.request.path) or "repository", seen, fix=fix),)

    def _unknown(self) -> str:
        given = ", ".join(self.given)
        return f"no field is shown: which of them hold values of {given} isn't known, for nothing can be rendered with placeholders instead"

    def tool(self) -> dict[str, str]:
        """Return the read of sops, where it was run: another one decrypts anew."""
        if not self.plain or not self.plain.used or self.plain.stands_in:
            return {}
        found = find(TOOL)
        return {found.read: found.digest}


def _objects(made: Rendered) -> tuple[Manifest, ...]:
    return (*made.manifests, *made.rests, *filter(None, [made.rollout]))
