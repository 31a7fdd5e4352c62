"""Which Secrets the containers of a pod can read, by its spec: what they print may hold their values. Pure.

Files (`volumes[].secret`, `projected`), variables (`envFrom`, `env`) and what a volume's driver is given (`nodePublishSecretRef`);
`imagePullSecrets` are the kubelet's alone, and a ServiceAccount's token is no Secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from handler.model.manifest import at

_REFERENCES = frozenset({"secret", "secretRef", "secretKeyRef", "nodePublishSecretRef"})


def mounted_secrets(spec: Any) -> frozenset[str]:
    """Return the names of the Secrets, in the pod's namespace, that a pod's spec (or anything that holds one) gives to containers."""
    return frozenset(_names(spec))


def _names(value: Any) -> Iterator[str]:
    for key, below in value.items() if isinstance(value, dict) else ():
        if key == "secretName" and isinstance(below, str):
            yield below
        name = at(below, "name") if key in _REFERENCES else None
        if isinstance(name, str):
            yield name
        yield from _names(below)
    for below in value if isinstance(value, list) else ():
        yield from _names(below)
