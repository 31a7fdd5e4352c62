"""The digest of a rendered set: a record decides by it whether hooks and a Rollout are due, and `compat: kubernixos` labels by it.

Law: it reveals no secret: a few unknown characters could be tried until the digest fits. What a Secret says, and what SOPS had
encrypted, is left out, and which version of it was read stands in its place. So is what each render makes anew.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any

from handler.config.secret_mask import SHORTEST, Mask, parts
from handler.model.field_masking import MASKED
from handler.model.hidden_fields import without
from handler.model.manifest import Manifest, canonical, digest_of
from handler.model.names import GroupKind, Identity
from handler.model.outside_inputs import LISTED_SECRETS, VALUES
from handler.model.render import Rendered

_SECRET = GroupKind("", "Secret")
_SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*')
_SECRETS = f"{VALUES}Secret/"


def set_digest(rendered: Rendered, named: Mapping[Identity, Identity] = MappingProxyType({})) -> str:
    """Return the digest of a render and its Rollout.

    `named`: identities of its objects -> those that `unstable` and `hidden` know them by, where these are others.
    """
    return digest_of((*_steady(rendered, named), *_versions(rendered)))


def _steady(rendered: Rendered, named: Mapping[Identity, Identity]) -> Iterator[Manifest]:
    """Yield the objects, and the Rollout, without secrets and what each render makes anew: what differs in that alone is the same set."""
    mask = _masking(rendered.secrets) if rendered.secrets else None
    for manifest in rendered.manifests:
        name = named.get(manifest.identity, manifest.identity)
        anew, hidden = rendered.unstable.get(name), rendered.hidden.get(name, ())
        if not (anew or hidden or mask):
            yield manifest
            continue
        body = without(manifest.body(), hidden)
        body = anew.without(body) if anew else body
        yield replace(manifest, raw=mask(_decoded(body) if manifest.identity.group_kind == _SECRET else body) if mask else canonical(body))
    if rendered.rollout:
        yield replace(rendered.rollout, raw=mask(rendered.rollout.body())) if mask else rendered.rollout


def _versions(rendered: Rendered) -> Iterator[Manifest]:
    """Yield what stands in place of secrets: ids of encrypted files, versions of objects of the cluster."""
    if rendered.hidden or rendered.secrets:
        names = (LISTED_SECRETS, VALUES if rendered.hidden else _SECRETS)
        read = [each for each in rendered.reads.elsewhere.paths if each[0].startswith(names)]
        yield Manifest(Identity("", "", "", ""), "", canonical([*read, *rendered.encrypted]), "")


def _masking(secrets: Sequence[str]) -> Callable[[dict[str, Any]], bytes]:
    """Return what writes an object without these texts; one that is too short for a mask is left out where it is a whole value."""
    hide = Mask.of([*secrets, *(part for text in secrets for part in parts(text))])
    short = {canonical(text).decode() for text in secrets if len(text) < SHORTEST}

    @cache  # objects repeat their texts
    def masked(scalar: str) -> str:
        return MASKED if scalar in short else hide(scalar)

    return lambda body: _SCALAR.sub(lambda found: masked(found[0]), canonical(body).decode()).encode()


def _decoded(secret: dict[str, Any]) -> dict[str, Any]:
    """Return a Secret with its data as text: a text that is a part of them can't be seen in base64."""
    data = secret.get("data")
    return {**secret, "data": {key: _text(value) for key, value in data.items()}} if isinstance(data, dict) else secret


def _text(value: Any) -> Any:
    try:
        return base64.b64decode(value).decode()
    except (binascii.Error, TypeError, ValueError):
        return value
