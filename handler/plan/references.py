"""Which objects others name: what pods mount, read and run as, what bindings bind, where traffic goes. Pure.

Known by fields, whatever the kind: `secretName`, `imagePullSecrets`, `privateKeySecretRef`, `configMapKeyRef`, `serviceAccountName`, each
map with `kind` and `name`, and each with `key` and `name`, a value of a Secret or a ConfigMap. Law: it only ever keeps something, so a
field that may be a name is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from handler.model.manifest import at
from handler.model.names import GroupKind, Identity

Named = tuple[str, str, str]  # kind, namespace and name; a cluster-scoped object may mean any namespace: ""
_FIELD = re.compile(
    r"(secret|configmap|serviceaccount|service|resourceclaimtemplate|resourceclaim)s?(?:[-_]?key)?[-_]?(?:refs?|selector|name)?$",
    re.IGNORECASE,
)
NAMED_BY_FIELD = frozenset(("Secret", "ConfigMap", "ServiceAccount", "Service", "ResourceClaimTemplate", "ResourceClaim"))
_KINDS = {kind.lower(): kind for kind in NAMED_BY_FIELD}
_OTHERS = {
    "certificateRefs": "Secret",
    "credentialName": "Secret",
    "backendRefs": "Service",
    "parentRefs": "Gateway",
    "issuerRef": "Issuer",
    "paramRef": "ConfigMap",
}
_PASSED = frozenset({"labels", "matchLabels", "selector", "managedFields", "ownerReferences"})
_SILENT = frozenset({GroupKind("", "ConfigMap"), GroupKind("", "Secret")})  # they name nothing


def may_name(kind: GroupKind) -> bool:
    """Whether objects of a kind may name others."""
    return kind not in _SILENT


def named_by(objects: Iterable[tuple[Identity, dict[str, Any]]]) -> dict[Named, Identity]:
    """Return what objects name, by kind, namespace and name, each with one that names it; owners aren't named."""
    found: dict[Named, Identity] = {}
    for identity, body in objects:
        found |= dict.fromkeys(_below(body, identity.namespace), identity)
    return found


def user_of(identity: Identity, named: Mapping[Named, Identity]) -> Identity | None:
    """Return what names an object, by what `named_by` has found; None: nothing does."""
    return named.get((identity.kind, identity.namespace, identity.name)) or named.get((identity.kind, "", identity.name))


def _below(value: Any, space: str) -> Iterator[Named]:
    if isinstance(value, list):
        for each in value:
            yield from _below(each, space)
    if not isinstance(value, dict):
        return
    kind = value.get("kind")
    if isinstance(kind, str):
        yield from _at(kind, value, space)
    if isinstance(value.get("key"), str):
        yield from _at("Secret", value, space)
        yield from _at("ConfigMap", value, space)
    for key, below in value.items():
        if key in _PASSED:
            continue
        yield from _below(below, space)
        if kind := _kind_of(key):
            for each in below if isinstance(below, list) else [below]:
                yield from _at(kind, each, space)


def _kind_of(key: str) -> str:
    found = _FIELD.search(key)
    return _KINDS[found[1].lower()] if found else _OTHERS.get(key, "")


def _at(kind: str, value: Any, space: str) -> Iterator[Named]:
    """Yield what a text (`name`, `namespace/name`) or a map names."""
    name, where = (at(value, "name"), at(value, "namespace")) if isinstance(value, dict) else (value, None)
    if isinstance(name, str):
        own, _, last = name.rpartition("/")
        yield kind, where if isinstance(where, str) else own or space, last
