"""Which Secrets the containers of a pod can read, by its spec, and what these hold: what they print may hold it. Pure.

Files (`volumes[].secret`, `projected`), variables (`envFrom`, `env`) and what a volume's driver is given (`nodePublishSecretRef`);
`imagePullSecrets` are the kubelet's alone, and a ServiceAccount's token is no Secret.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from handler.model.manifest import at

_READ = ("secretRef", "secretKeyRef")
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


def names_secrets(value: Any) -> bool:
    """Whether an object names a Secret for its controller to read: `{secretRef: {name: db}}`, `valuesFrom: [{kind: Secret, name: db}]`."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    named = isinstance(value, dict) and (value.get("kind") == "Secret" or any(at(value, key, "name") for key in _READ))
    return named or any(map(names_secrets, below))


def held(secret: object) -> Iterator[str]:
    """Yield what a live Secret holds, as text; what is none as its base64."""
    data = at(secret, "data")
    yield from filter(None, map(_decoded, data.values() if isinstance(data, dict) else ()))


def _decoded(value: object) -> str:
    text = value if isinstance(value, str) else ""
    try:
        return base64.b64decode(text).decode()
    except (binascii.Error, ValueError):
        return text
