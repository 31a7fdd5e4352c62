"""What a run's texts may not show: the operator's secrets, and what the commit declares as secret, for a container may print it.

That is what its Secrets hold, whole and in parts, as do those of the cluster that values are taken from, the fields of other objects
whose name says that they hold a secret, any JSON web token, and the password of any URL. A part or field that is called like an object of
the commit isn't hidden: texts name objects all the time.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from handler.config.secret_mask import SHORTEST_PART, Mask, Opening
from handler.model.errors import AnnealError, Problem
from handler.model.field_masking import MASKED, mentions_secret, sensitive, without_passwords
from handler.model.hidden_fields import HiddenFields
from handler.model.manifest import Manifest, at
from handler.model.names import GroupKind, Identity, identity_of
from handler.plan.admission import CRD

_SECRET = GroupKind("", "Secret")
_TOKEN = re.compile(r"\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*")
"""A JSON web token: of a ServiceAccount, of whom a program has signed in."""


_MOST_VALUES = 2_000
"""Values of one object that are looked for in a text about it; with more of them the text is hidden as a whole."""


@dataclass(slots=True)
class CommitMask:
    """A mask of all that. The objects are read at its first use: most runs have nothing to hide. `secrets`, `hidden`: see `Rendered`."""

    mask: Callable[[str], str]
    manifests: Iterable[Manifest] = field(repr=False)
    _declared: Mask | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)
    hidden: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        """Return the text with every spelling of every secret replaced."""
        if self._declared is None:
            self._declared = Mask.of(declared(tuple(self.manifests), self.secrets))
        return without_credentials(self._declared(self.mask(text)))

    def about(self, subject: str) -> Callable[[str], str]:
        """Return the mask of texts about one object: also the values of its hidden fields, too short to be hidden wherever they stand."""
        outer = self.mask.about(subject) if isinstance(self.mask, CommitMask) else str
        identity = next((each for each in self.hidden if str(each) == subject), None)
        as_written = (identity, replace(identity, namespace="")) if identity else ()
        pointers = self.hidden[identity] if identity else ()
        found = (each.body() for each in self.manifests if each.identity in as_written)
        values = sorted({value for body in found for value in HiddenFields.of(body, pointers).values if value}, key=len, reverse=True)
        if len(values) > _MOST_VALUES:
            return lambda _: MASKED
        whole = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, values))})(?![\w])") if values else None
        return lambda text: self(whole.sub(MASKED, outer(text)) if whole else outer(text))


def hidden(error: AnnealError, mask: Callable[[str], str]) -> AnnealError:
    """Mask what an error's problems say. It stays the same error: its class says who must act; what else it carries is never shown."""
    error.problems = tuple(_masked(each, mask.about(each.subject) if isinstance(mask, CommitMask) else mask) for each in error.problems)
    error.args = error.problems
    return error


def _masked(problem: Problem, mask: Callable[[str], str]) -> Problem:
    return replace(problem, message=mask(problem.message), fix=mask(problem.fix))


def without_credentials(text: str) -> str:
    """Return a text without JSON web tokens and the passwords of URLs, whose values nothing here knows."""
    return without_passwords(_TOKEN.sub(MASKED, text) if "eyJ" in text else text)


def declared(manifests: Collection[Manifest], secrets: Iterable[str] = ()) -> Iterator[str]:
    """Yield what the objects of a commit hold, and what they were made from, that no text may show."""
    names, opening = _names(manifest.identity for manifest in manifests), Opening()
    for text in secrets:
        yield from ({text} | opening.parts(text)) - names
    for manifest in manifests:
        kind = manifest.identity.group_kind
        if kind == _SECRET or mentions_secret(manifest.raw.decode()):
            yield from _hidden(kind, manifest.body(), names, opening)


def living(objects: Collection[dict[str, Any]], beside: Iterable[Identity] = ()) -> Iterator[str]:
    """Yield the same of live objects of a target: of what a commit has declared, where nothing has been rendered.

    `beside`: objects whose names aren't hidden either.
    """
    identities = [identity_of(each) for each in objects]
    names, opening = _names((*identities, *beside)), Opening()
    for identity, live in zip(identities, objects, strict=True):
        yield from _hidden(identity.group_kind, live, names, opening)


def _names(identities: Iterable[Identity]) -> set[str]:
    return {name for identity in identities for name in (identity.name, identity.namespace)}


def _hidden(kind: GroupKind, body: object, names: set[str], opening: Opening) -> Iterator[str]:
    if kind == CRD:  # a long schema: it names fields that hold secrets, and holds none
        return
    if kind != _SECRET:
        yield from fields(kind, body, names)
        return
    for value in held(body):
        yield value
        yield from opening.parts(value) - names


def fields(kind: GroupKind, body: object, names: Collection[str] = ()) -> Iterator[str]:
    """Yield the values of an object's fields, and of its containers' variables, whose name says that they hold a secret."""
    for path, value in sensitive(kind, body):
        text = str(value)
        if not isinstance(value, bool) and len(text) >= SHORTEST_PART and text not in names and text not in path:
            yield text


def values(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield what declared Secrets hold, as text."""
    for manifest in manifests:
        if manifest.identity.group_kind == _SECRET:
            yield from held(manifest.body())


def held(secret: object) -> Iterator[str]:
    """Yield what a Secret holds, as text; what is none as its base64."""
    plain, encoded = at(secret, "stringData"), at(secret, "data")
    yield from (value for value in (plain.values() if isinstance(plain, dict) else ()) if isinstance(value, str))
    yield from filter(None, (_decoded(value) for value in (encoded.values() if isinstance(encoded, dict) else ())))


def _decoded(value: object) -> str:
    text = value if isinstance(value, str) else ""
    try:
        return base64.b64decode(text).decode()
    except (binascii.Error, ValueError):
        return text
