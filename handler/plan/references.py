"""Which objects the declared ones name: what pods mount, read and run as, what bindings bind, where traffic goes. Pure.

Known by fields, whatever the kind: `secretName`, `imagePullSecrets`, `privateKeySecretRef`, `configMapKeyRef`, `serviceAccountName`, and
each map with `kind` and `name`. Law: it only ever keeps something, so a field that may be a name is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from handler.model.manifest import Manifest, at
from handler.model.names import Identity

Named = tuple[str, str, str]  # kind, namespace and name
_FIELD = re.compile(
    r"(secret|configmap|serviceaccount|service|resourceclaimtemplate|resourceclaim)s?(?:key)?(?:refs?|selector|name)?$", re.IGNORECASE
)
_KINDS = {kind.lower(): kind for kind in ("Secret", "ConfigMap", "ServiceAccount", "Service", "ResourceClaimTemplate", "ResourceClaim")}
_OTHERS = {"certificateRefs": "Secret", "credentialName": "Secret", "backendRefs": "Service", "parentRefs": "Gateway"}
_PASSED = frozenset({"labels", "matchLabels", "selector"})
_SILENT = frozenset({"ConfigMap", "Secret"})  # kinds that name nothing


def named_by(manifests: Iterable[Manifest]) -> dict[Named, Identity]:
    """Return what declared objects name, by kind, namespace and name, each with an object that names it."""
    found: dict[Named, Identity] = {}
    for manifest in manifests:
        if manifest.identity.group or manifest.identity.kind not in _SILENT:
            found |= dict.fromkeys(_below(manifest.body(), manifest.identity.namespace), manifest.identity)
    return found


def _below(value: Any, space: str) -> Iterator[Named]:
    if isinstance(value, list):
        for each in value:
            yield from _below(each, space)
    if not isinstance(value, dict):
        return
    kind = value.get("kind")
    if isinstance(kind, str):
        yield from _at(kind, value, space)
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
