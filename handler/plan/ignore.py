"""Fields that others may own: rules of the target, an annotation, and what every cluster needs.

An ignored field is left out when another manager owns it live, else its live value is adopted: ignoring never resets a
value and never fails. An object that isn't there yet is created as git declares it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from handler.config.settings import IgnoreRule
from handler.model.names import FIELD_MANAGER, Identity
from handler.plan.owned import owners

ANNOTATION = "anneal.dev/ignore"
"""Comma-separated JSON pointers (RFC 6901) on a manifest."""
_CA_BUNDLES = {
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): ("/webhooks/*/clientConfig/caBundle",),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): ("/webhooks/*/clientConfig/caBundle",),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("/spec/conversion/webhook/clientConfig/caBundle",),
    ("apiregistration.k8s.io", "APIService"): ("/spec/caBundle",),
}
_REPLICAS = "/spec/replicas"
_HPA_MANAGER, _HPA_SUBRESOURCE = "kube-controller-manager", "scale"
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Ignoring:
    """What one run ignores. `scaled`: (kind, namespace, name) of what a declared HPA scales."""

    rules: tuple[IgnoreRule, ...]
    scaled: frozenset[tuple[str, str, str]] = frozenset()

    @classmethod
    def of(cls, rules: Sequence[IgnoreRule], bodies: Sequence[dict[str, Any]]) -> Ignoring:
        """Collect the rules, and the targets of every declared HorizontalPodAutoscaler among the bodies."""
        return cls(tuple(rules), frozenset(_scaled(body) for body in bodies if body.get("kind") == "HorizontalPodAutoscaler"))

    def effective(self, identity: Identity, desired: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
        """Return the desired body with ignored fields left out or adopted; `desired` itself is changed."""
        for pointer in self._pointers(identity, desired, live):
            for path in _expand(desired, live, _steps(pointer)):
                _yield_to_live(desired, live, path)
        return desired

    def _pointers(self, identity: Identity, desired: dict[str, Any], live: dict[str, Any]) -> Iterator[str]:
        """Yield every pointer that holds for an object."""
        annotations = (desired.get("metadata") or {}).get("annotations") or {}
        yield from (part.strip() for part in str(annotations.get(ANNOTATION, "")).split(",") if part.strip())
        yield from _CA_BUNDLES.get((identity.group, identity.kind), ())
        if self._is_scaled(identity, live):
            yield _REPLICAS
        for rule in self.rules:
            if _selects(rule, identity):
                yield from rule.paths

    def _is_scaled(self, identity: Identity, live: dict[str, Any]) -> bool:
        """Whether an HPA scales it: one that git declares, or one seen at work on the scale subresource."""
        if (identity.kind, identity.namespace, identity.name) in self.scaled:
            return True
        return (_HPA_MANAGER, _HPA_SUBRESOURCE) in owners(live, ("spec", "replicas"))


def _scaled(body: dict[str, Any]) -> tuple[str, str, str]:
    """Return what an HPA scales."""
    reference = (body.get("spec") or {}).get("scaleTargetRef") or {}
    namespace = (body.get("metadata") or {}).get("namespace") or ""
    return str(reference.get("kind")), str(namespace), str(reference.get("name"))


def _selects(rule: IgnoreRule, identity: Identity) -> bool:
    """Whether a rule is for an object; empty parts match all."""
    select = rule.select
    group = select.group if select.group != "core" else ""
    wanted = ((select.kind, identity.kind), (select.name, identity.name), (select.namespace, identity.namespace))
    return (not select.group or fnmatchcase(identity.group, group)) and all(not want or fnmatchcase(has, want) for want, has in wanted)


def _steps(pointer: str) -> list[str]:
    """Split a JSON pointer (RFC 6901)."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.lstrip("/").split("/")]


def _expand(desired: Any, live: Any, steps: list[str], path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the concrete paths of a pointer; `*` stands for every key or list position of the desired side."""
    if not steps:
        yield path
        return
    step, rest = steps[0], steps[1:]
    if isinstance(desired, list):
        for index in range(len(desired)) if step == "*" else _index(step, desired):
            yield from _expand(desired[index], _child(live, index), rest, (*path, index))
    elif isinstance(desired, dict):
        for key in sorted(desired) if step == "*" else [step]:
            yield from _expand(desired.get(key), _child(live, key), rest, (*path, key))
    elif desired is None:
        yield (*path, *steps) if "*" not in steps else path


def _index(step: str, items: list[Any]) -> list[int]:
    """Read a list position."""
    return [int(step)] if step.isdecimal() and int(step) < len(items) else []


def _child(node: Any, key: Any) -> Any:
    """Go down without failing."""
    if isinstance(node, dict):
        return node.get(key)
    if isinstance(node, list) and isinstance(key, int) and key < len(node):
        return node[key]
    return None


def _get(node: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path or _ABSENT."""
    for step in path:
        present = (isinstance(node, dict) and step in node) or (isinstance(node, list) and isinstance(step, int) and step < len(node))
        if not present:
            return _ABSENT
        node = node[step]
    return node


def _yield_to_live(desired: dict[str, Any], live: dict[str, Any], path: tuple[Any, ...]) -> None:
    """Leave one field to whoever owns it live, or adopt its live value if it's ours or nobody's."""
    value = _get(live, path)
    managers = {manager for manager, _ in owners(live, _owned_path(live, path))}
    if value is _ABSENT or (managers and FIELD_MANAGER not in managers):
        _remove(desired, path)
    elif _get(desired, path[:-1]) is not _ABSENT:
        _get(desired, path[:-1])[path[-1]] = value


def _owned_path(live: dict[str, Any], path: tuple[Any, ...]) -> tuple[Any, ...]:
    """Name list positions as `managedFields` does: by the element's name, where it has one."""
    steps: list[Any] = []
    for depth, step in enumerate(path):
        element = _get(live, path[: depth + 1])
        named = isinstance(step, int) and isinstance(element, dict) and isinstance(element.get("name"), str)
        steps.append((("name", element["name"]),) if named else step)
    return tuple(steps)


def _remove(desired: dict[str, Any], path: tuple[Any, ...]) -> None:
    """Leave a field out."""
    parent = _get(desired, path[:-1])
    if isinstance(parent, dict):
        parent.pop(path[-1], None)
