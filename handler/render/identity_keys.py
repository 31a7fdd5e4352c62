"""How a Rollout calls objects that a program made, which no file declares: by what they are. Pure.

Deployment/shop/api       an object with its namespace
Namespace/shop            one without
ConfigMap/shop/settings   also by the name without kustomize's hash, where no other object has it
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from handler.model.manifest import Manifest
from handler.model.names import Identity

_HASHED = frozenset({"ConfigMap", "Secret"})
_HASH = re.compile(r"-[2456789bcdfghkmt]{10}\Z")
"""What kustomize adds to a name: ten of the letters of its hasher (api/hasher, encode)."""


def identity_keys(manifests: Iterable[Manifest]) -> Mapping[str, tuple[Identity, ...]]:
    """Return key -> the object; none where two objects would have it."""
    exact: dict[str, list[Identity]] = defaultdict(list)
    plain: dict[str, list[Identity]] = defaultdict(list)
    for manifest in manifests:
        identity = manifest.identity
        exact[str(identity)].append(identity)
        if identity.kind in _HASHED and _HASH.search(identity.name):
            plain[str(replace(identity, name=_HASH.sub("", identity.name)))].append(identity)
    return {key: tuple(found) for key, found in {**plain, **exact}.items() if len(found) == 1}
