"""What the commonest commands of kubectl ask the API server: a `get` of JSON, a `patch` and a `create`, as one request each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import yaml

_CORE = ("ConfigMap", "PersistentVolumeClaim", "Secret", "Service", "ServiceAccount")
NAMESPACED = {
    **{("", kind): ("/api/v1", f"{kind.lower()}s") for kind in _CORE},
    ("apps", "Deployment"): ("/apis/apps/v1", "deployments"),
    ("apps", "StatefulSet"): ("/apis/apps/v1", "statefulsets"),
    ("batch", "Job"): ("/apis/batch/v1", "jobs"),
}
"""Group and kind -> the API's path and the resource, of what targets hold in tests."""
_BESIDE = {
    **{("", kind): ("/api/v1", f"{kind.lower()}s") for kind in ("Event", "LimitRange", "Pod", "ResourceQuota")},
    ("apps", "ReplicaSet"): ("/apis/apps/v1", "replicasets"),
    ("coordination.k8s.io", "Lease"): ("/apis/coordination.k8s.io/v1", "leases"),
    ("discovery.k8s.io", "EndpointSlice"): ("/apis/discovery.k8s.io/v1", "endpointslices"),
    ("networking.k8s.io", "NetworkPolicy"): ("/apis/networking.k8s.io/v1", "networkpolicies"),
}
_SHORT = {
    "cm": ("/api/v1", "configmaps"),
    "pvc": ("/api/v1", "persistentvolumeclaims"),
    "quota": ("/api/v1", "resourcequotas"),
    "hpa": ("/apis/autoscaling/v2", "horizontalpodautoscalers"),
}
_PATHS = _SHORT | {name: found for (_, kind), found in (NAMESPACED | _BESIDE).items() for name in (kind, kind.lower(), found[1])}
_PATCHES = {"strategic": "strategic-merge-patch", "merge": "merge-patch", "json": "json-patch"}
_TAKES_VALUE = ("-n", "-l", "-p", "-o")


@dataclass(frozen=True)
class Asked:
    """A request. `root` and `plural` are empty where `kind` names its group, which the API server must be asked about."""

    method: str
    kind: str
    root: str
    plural: str
    namespace: str
    rest: str
    query: str
    body: str = ""
    content: str = "application/json"
    flags: frozenset[str] = field(default_factory=frozenset)


def asked(arguments: Sequence[str]) -> Asked | None:
    """Return what a command asks, if it is one of those known here."""
    verb, *rest = arguments
    named, options = _parsed(rest)
    namespace = options.pop("-n", "")
    if not namespace or verb not in ("get", "patch") or not named or len(named) > 2:
        return None
    kind, *names = named[0].split("/") if len(named) == 1 else named
    root, plural = _PATHS.get(kind, ("", ""))
    if not plural and ("." not in kind or "," in kind):
        return None
    make = _get if verb == "get" else _patch
    return make(kind, (root, plural), namespace, names, options)


def documents(given: str) -> list[dict[str, Any]]:
    """Return the objects of a YAML stream; those of a List one by one."""
    found = [each for each in yaml.safe_load_all(given) if each]
    return [item for each in found for item in (each["items"] if each["kind"] == "List" else [each])]


def _get(kind: str, path: tuple[str, str], namespace: str, names: list[str], options: dict[str, str]) -> Asked | None:
    query = {"labelSelector": options.pop("-l", ""), "fieldSelector": options.pop("--field-selector", "")}
    if options.pop("-o", "") != "json" or options.keys() - {"--show-managed-fields", "--ignore-not-found"}:
        return None
    rest = "".join(f"/{name}" for name in names)
    return Asked("GET", kind, *path, namespace, rest, _query(query), flags=frozenset(options))


def _patch(kind: str, path: tuple[str, str], namespace: str, names: list[str], options: dict[str, str]) -> Asked | None:
    body, content = options.pop("-p", ""), _PATCHES.get(options.pop("--type", "strategic"))
    manager, part = options.pop("--field-manager", "kubectl-patch"), options.pop("--subresource", "")
    if options or not names or not body or not content or part == "scale":
        return None
    rest = "/".join(("", *names, *([part] if part else [])))
    return Asked("PATCH", kind, *path, namespace, rest, _query({"fieldManager": manager}), body, f"application/{content}+json")


def _query(given: dict[str, str]) -> str:
    chosen = {name: value for name, value in given.items() if value}
    return f"?{urlencode(chosen)}" if chosen else ""


def _parsed(rest: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return what isn't an option, and the options with their values."""
    named, options, left = [], {}, list(rest)
    while left:
        word = left.pop(0)
        if word in _TAKES_VALUE and left:
            options[word] = left.pop(0)
        elif word.startswith("-"):
            name, _, value = word.partition("=")
            options[name] = value
        else:
            named.append(word)
    return named, options
