"""Fields that others may own: rules of the target, an annotation, and what every cluster needs.

An ignored field is left out when another manager owns it live, else its live value is adopted: ignoring never resets a value and never
fails. An object that isn't there yet is created as git declares it. A field that each render makes anew (a chart's random password) keeps
its live value, ignored or not: nothing is rotated that git didn't change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from handler.config.settings import IgnoreRule
from handler.model.manifest import at, items_at
from handler.model.names import FIELD_MANAGER, IDENTITY, PART_OF, GroupKind, Identity, identity_of
from handler.model.render import UnstableFields
from handler.plan.managed_fields import child, is_ours_alone, managed_fields, owners
from handler.rollout.hook_annotations import ROLLOUT

ANNOTATION = "anneal.dev/ignore"  # comma-separated JSON pointers (RFC 6901) on a manifest
_WEBHOOKS = ("/webhooks/*/clientConfig/caBundle", ())
_REVISION = "deployment.kubernetes.io/revision"
_INJECTED = {"/data/service-ca.crt": ("annotations", "service.beta.openshift.io/inject-cabundle")}
_INJECTED |= {"/data/ca-bundle.crt": ("labels", "config.openshift.io/inject-trusted-cabundle")}
_FILLED_IN: Mapping[tuple[str, str], Sequence[tuple[str, Sequence[str]]]] = {
    ("", "ConfigMap"): tuple((pointer, ("metadata", *mark)) for pointer, mark in _INJECTED.items()),
    ("", "PersistentVolume"): tuple((f"/spec/claimRef/{key}", ("spec", "claimRef")) for key in ("uid", "resourceVersion")),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): (_WEBHOOKS,),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): (_WEBHOOKS,),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (("/spec/conversion/webhook/clientConfig/caBundle", ()),),
    ("apiregistration.k8s.io", "APIService"): (("/spec/caBundle", ()),),
    ("apps", "Deployment"): ((f"/metadata/annotations/{_REVISION.replace('/', '~1')}", ("metadata", "annotations", _REVISION)),),
}
"""What controllers fill in, whatever a manifest says of it, one that is exported or a chart's; each with what git declares then, too.

Until one has written such a field git's value counts. The rows that need nothing are tested beside these: `tests/e2e/test_filled_in.py`.
"""
_EMPTY = {("", "PersistentVolumeClaim"): ("spec", "volumeName")}
"""What controllers fill in where a manifest says that it is empty; another value is its author's."""
_OF_ACCOUNTS = "kubernetes.io/service-account-token"
_LIFECYCLE, _BY_PEOPLE = "node.kubernetes.io/", "node.kubernetes.io/out-of-service"
_CONTROLLER = "filled in by a controller"
_REPLICAS, _SCALED = "/spec/replicas", "scaled by an autoscaler"
SCALERS = frozenset({GroupKind("autoscaling", "HorizontalPodAutoscaler"), GroupKind("keda.sh", "ScaledObject")})
"""Kinds that name what they scale."""
_AUTOSCALERS = ("kube-controller-manager", "keda")
"""How the managers begin that scale: Kubernetes' HPA controller, KEDA's operator. Any other may be a person's tool: that is drift."""
_ABSENT = object()
_NEVER = frozenset(
    {
        ("apiVersion",),
        ("kind",),
        ("metadata",),
        ("metadata", "name"),
        ("metadata", "namespace"),
        ("metadata", "labels"),
        ("metadata", "annotations"),
        ("metadata", "labels", PART_OF),
        ("metadata", "annotations", IDENTITY),
        ("metadata", "annotations", ROLLOUT),
    }
)
"""What makes an object that one and ours: no pointer reaches it."""
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Ignoring:
    """What one run ignores.

    `scaled`: (kind, namespace, name) of what a declared autoscaler scales; `unstable`: what each render makes anew.
    """

    rules: tuple[IgnoreRule, ...]
    scaled: frozenset[tuple[str, str, str]] = frozenset()
    unstable: Mapping[Identity, UnstableFields] = field(default_factory=dict)

    @classmethod
    def of(
        cls, rules: Sequence[IgnoreRule], bodies: Sequence[dict[str, Any]], unstable: Mapping[Identity, UnstableFields] | None = None
    ) -> Ignoring:
        """Collect the rules, and the targets of every declared autoscaler among the bodies."""
        scaled = frozenset(_scaled(body) for body in bodies if identity_of(body).group_kind in SCALERS)
        return cls(tuple(rules), scaled, unstable or {})

    def effective(self, identity: Identity, desired: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
        """Return the desired body with ignored fields left out or adopted; `desired` itself is changed."""
        for pointer, why in list(self._pointers(identity, desired, live)):
            for path, live_path in reversed(list(_expand(desired, live, _steps(pointer)))):  # backwards: list elements may go
                if path not in _NEVER and not _is_gits(why, live, live_path):
                    _yield_to_live(desired, live, path, live_path)
        if (identity.group, identity.kind) == ("", "Node") and items_at(desired, "spec", "taints"):
            desired["spec"]["taints"] = _taints(items_at(desired, "spec", "taints"), items_at(live, "spec", "taints"))
        for pointer in self.held(identity):
            for path, live_path in _expand(desired, live, _steps(pointer)):
                if path not in _NEVER:
                    _hold(desired, live, path, live_path)
        return desired

    def held(self, identity: Identity) -> list[str]:
        """Return the pointers of what a render makes anew each time and no rule names: their live values stay, and stay ours."""
        unstable = self.unstable.get(identity)
        ruled = [_steps(path) for rule in self.rules if _selects(rule, identity) for path in rule.paths] if unstable else []
        return [path for path in unstable.paths if not any(_names(each, _steps(path)) for each in ruled)] if unstable else []

    def spared(self, identity: Identity, desired: dict[str, Any], live: dict[str, Any]) -> list[Path]:
        """Return the paths of live that are ignored: their owners keep them."""
        return [path for path, _ in self.ignored(identity, desired, live)]

    def ignored(self, identity: Identity, desired: dict[str, Any], live: dict[str, Any]) -> list[tuple[Path, str]]:
        """Return the same, each with why."""
        found: list[tuple[Path, str]] = []
        for pointer, why in self._pointers(identity, desired, live):
            steps = _steps(pointer)
            found += [(path, why) for path, _ in _expand(live, live, steps)]
            found += [(path, why) for _, path in _expand(desired, live, steps)]  # an element is where its name is, not its position
        return [(path, why) for path, why in found if path not in _NEVER and not _is_gits(why, live, path)]

    def made_anew(self, identity: Identity, live: dict[str, Any]) -> list[Path]:
        """Return the paths of live whose values a render made once, and makes anew each time."""
        unstable = self.unstable.get(identity)
        return [path for pointer in unstable.paths for path, _ in _expand(live, live, _steps(pointer))] if unstable else []

    def pointers(self, identity: Identity, declared: dict[str, Any], live: dict[str, Any]) -> list[str]:
        """Return the pointers of all that git leaves to others, by what it declares; also of what a render makes anew each time."""
        return [pointer for pointer, _ in self._pointers(identity, declared, live)] + self.held(identity)

    def _pointers(self, identity: Identity, desired: dict[str, Any], live: dict[str, Any]) -> Iterator[tuple[str, str]]:
        yield from ((pointer, f"ignored by {ANNOTATION}") for pointer in annotated(desired))
        kind = (identity.group, identity.kind)
        rows = _FILLED_IN.get(kind, ())
        yield from ((pointer, _CONTROLLER) for pointer, declared in rows if not declared or at(desired, *declared) is not None)
        if kind in _EMPTY and at(desired, *_EMPTY[kind]) == "":
            yield f"/{'/'.join(_EMPTY[kind])}", _CONTROLLER
        if kind == ("", "Secret") and desired.get("type") == _OF_ACCOUNTS:
            yield "/data/*", _CONTROLLER
        if (identity.kind, identity.namespace, identity.name) in self.scaled:
            yield _REPLICAS, _SCALED
        yield from ((pointer, _SCALED) for entry in managed_fields(live) if _scales(entry) for pointer in _leaves(entry.get("fieldsV1")))
        for rule in self.rules:
            if _selects(rule, identity):
                yield from ((pointer, "ignored by a rule of the target") for pointer in rule.paths)


def annotated(body: Mapping[str, Any]) -> list[str]:
    """Return the pointers of an object's annotation."""
    written = str(at(body, "metadata", "annotations", ANNOTATION) or "")
    return [part.strip() for part in written.split(",") if part.strip()]


def without(body: dict[str, Any], live: dict[str, Any], pointers: Sequence[str]) -> dict[str, Any]:
    """Return a body without the fields of these pointers; it is changed."""
    for pointer in pointers:
        for path, _ in reversed(list(_expand(body, live, _steps(pointer)))):
            parent = _get(body, path[:-1])
            if path not in _NEVER and _get(body, path) is not _ABSENT:
                del parent[path[-1]]
    return body


def _taints(declared: list[Any], live: list[Any]) -> list[Any]:
    """Return a Node's taints: the declared ones, and the node lifecycle controller's as they live."""

    def by_controller(taint: Any) -> bool:
        key = str(at(taint, "key"))
        return key.startswith(_LIFECYCLE) and key != _BY_PEOPLE

    wanted = [each for each in declared if not by_controller(each)]
    there = [each for each in live if each in wanted or by_controller(each)]
    return there + [each for each in wanted if each not in there]


def _scaled(body: dict[str, Any]) -> tuple[str, str, str]:
    reference = at(body, "spec", "scaleTargetRef")
    kind = at(reference, "kind") or ("Deployment" if body["kind"] == "ScaledObject" else None)
    return str(kind), str(at(body, "metadata", "namespace") or ""), str(at(reference, "name"))


def _is_gits(why: str, live: dict[str, Any], path: Path) -> bool:
    """Whether no controller has written yet what one may fill in: what git declares counts."""
    return why == _CONTROLLER and is_ours_alone(live, path)


def _scales(entry: Mapping[str, Any]) -> bool:
    """Whether an autoscaler has written an entry through the subresource `scale`, which holds nothing else."""
    return entry.get("subresource") == "scale" and str(entry.get("manager") or "").startswith(_AUTOSCALERS)


def _leaves(fields: Any, pointer: str = "") -> Iterator[str]:
    for key, below in fields.items() if isinstance(fields, dict) else ():
        if key.startswith("f:"):
            yield from _leaves(below, f"{pointer}/{key[2:].replace('~', '~0').replace('/', '~1')}")
    if pointer and not fields:
        yield pointer


def _selects(rule: IgnoreRule, identity: Identity) -> bool:
    select = rule.select
    group = select.group if select.group != "core" else ""
    wanted = ((select.kind, identity.kind), (select.name, identity.name), (select.namespace, identity.namespace))
    return (not select.group or fnmatchcase(identity.group, group)) and all(not want or fnmatchcase(has, want) for want, has in wanted)


def _steps(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/")]


def _expand(desired: Any, live: Any, steps: list[str], ours: Path = (), theirs: Path = ()) -> Iterator[tuple[Path, Path]]:
    """Yield a pointer's path in the desired object and the same field's path live; `*` is all that is declared there."""
    if not steps:
        yield ours, theirs
        return
    step, rest = steps[0], steps[1:]
    if isinstance(desired, list):
        for index in range(len(desired)) if step == "*" else _index(step, desired):
            found = _counterpart(desired, index, live)
            yield from _expand(desired[index], child(live, found), rest, (*ours, index), (*theirs, found))
    elif isinstance(desired, dict):
        for key in sorted(desired) if step == "*" else [step]:
            yield from _expand(desired.get(key), child(live, key), rest, (*ours, key), (*theirs, key))


def _index(step: str, items: list[Any]) -> list[int]:
    """Read a list position: ASCII digits (RFC 6901, section 4), no more than any list has items for."""
    return [int(step)] if step.isascii() and step.isdecimal() and len(step) < 10 and int(step) < len(items) else []


def _counterpart(desired: list[Any], index: int, live: Any) -> int:
    name = at(desired[index], "name")
    if name is None or not isinstance(live, list):
        return index
    return next((position for position, item in enumerate(live) if at(item, "name") == name), len(live))


def _get(node: Any, path: Path) -> Any:
    for step in path:
        present = (isinstance(node, dict) and step in node) or (isinstance(node, list) and isinstance(step, int) and step < len(node))
        if not present:
            return _ABSENT
        node = node[step]
    return node


def _names(rule: list[str], steps: list[str]) -> bool:
    """Whether a rule's pointer is that of a field or of something around it."""
    return len(rule) <= len(steps) and all(ours in ("*", theirs) for ours, theirs in zip(rule, steps, strict=False))


def _hold(desired: dict[str, Any], live: dict[str, Any], path: Path, live_path: Path) -> None:
    """Declare a field as it lives; one that isn't there yet is created as it was rendered."""
    parent, value = _get(desired, path[:-1]), _get(live, live_path)
    if value is not _ABSENT and parent is not _ABSENT:
        parent[path[-1]] = value


def _yield_to_live(desired: dict[str, Any], live: dict[str, Any], path: Path, live_path: Path) -> None:
    parent, field, value = _get(desired, path[:-1]), path[-1], _get(live, live_path)
    managers = {manager for manager, _ in owners(live, live_path)}
    declared = _get(desired, path) is not _ABSENT
    if value is _ABSENT or (managers and FIELD_MANAGER not in managers):
        if declared:
            del parent[field]
    elif declared or managers:
        parent[field] = value
