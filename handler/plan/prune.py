"""Whether one live object may be deleted, and in which order. Deleting is the most dangerous thing we do.

A candidate carries our label, our identity naming exactly it, and is not declared (`compare` saw to that). Every check
here only ever keeps it. What a check can't know from the object itself (what a Namespace holds, whether a CRD has
instances) is asked for by `questions` and handed back as Facts; without an answer the object stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handler.config.settings import Target
from handler.model.names import GroupKind, Identity, identity_of
from handler.model.plan import Action, Change
from handler.model.resource import Resource
from handler.plan.admit import CRD, NAMESPACE, allows
from handler.plan.order import DEPENDS_ON, depends_on, sort_key, wave_of

ALLOW = "anneal.dev/prune"
"""Annotation on an object: `allow` opts a guarded kind in, `disabled` keeps any object."""
_GUARDED = {NAMESPACE, CRD, GroupKind("", "PersistentVolume"), GroupKind("", "PersistentVolumeClaim")}
_SYSTEM_NAMESPACES = ("default", "kube-")
PROTECTIONS: tuple[tuple[str, frozenset[str]], ...] = (
    (ALLOW, frozenset({"disabled"})),
    ("kustomize.toolkit.fluxcd.io/prune", frozenset({"disabled", "Disabled"})),
    ("argocd.argoproj.io/sync-options", frozenset({"Prune=false", "Prune=confirm", "Delete=false", "Delete=confirm"})),
    ("helm.sh/resource-policy", frozenset({"keep"})),
    ("cli-utils.sigs.k8s.io/on-remove", frozenset({"keep"})),
    ("client.lifecycle.config.k8s.io/deletion", frozenset({"detach"})),
    ("kapp.k14s.io/delete-strategy", frozenset({"orphan"})),
    ("kluctl.io/skip-delete", frozenset({"true"})),
)
"""Annotations that keep an object, whoever's they are (Flux also reads its own as a label)."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What had to be asked. Absent keys mean: not known, so keep."""

    foreign_content: Mapping[str, Sequence[str]] = field(default_factory=dict)
    instances: Mapping[str, int] = field(default_factory=dict)


def questions(candidates: Iterable[dict[str, Any]], target: Target) -> tuple[list[str], list[Identity]]:
    """Return the namespaces whose content, and the CRDs whose instances, must be known to judge the candidates."""
    identities = [identity_of(live) for live in candidates if _opted_in(live, target)]
    namespaces = [identity.name for identity in identities if identity.group_kind == NAMESPACE]
    return namespaces, [identity for identity in identities if identity.group_kind == CRD]


def judge(live: dict[str, Any], target: Target, desired: Iterable[Identity], facts: Facts) -> Change:
    """Return PRUNE, or SKIP with the reason that keeps it and the line that would let it go."""
    metadata = live["metadata"]
    identity = identity_of(live)
    reason = (
        _kept_by_place(identity, target)
        or _kept_by_owner(metadata)
        or _kept_by_mark(metadata)
        or _kept_by_kind(live, identity, target)
        or _kept_by_content(identity, desired, facts)
    )
    finalizers = tuple(str(name) for name in metadata.get("finalizers") or ())
    action = Action.SKIP if reason else Action.PRUNE
    why = reason or ("is being deleted already" if metadata.get("deletionTimestamp") else "no longer declared")
    return Change(action, identity, str(metadata["uid"]), str(metadata["resourceVersion"]), why, finalizers=finalizers)


def _kept_by_place(identity: Identity, target: Target) -> str:
    """Outside the whitelist nothing is touched."""
    if identity.namespace and not allows(target, identity.namespace):
        return f"outside: namespace {identity.namespace} left the whitelist; it stays tracked"
    scoped = identity.kind in target.cluster_scoped or str(identity.group_kind) in target.cluster_scoped
    if not identity.namespace and not scoped:
        return f"outside: {identity.group_kind} left clusterScoped; it stays tracked"
    return ""


def _kept_by_owner(metadata: Mapping[str, Any]) -> str:
    """What another object owns goes with its owner (Rekkoner's rule)."""
    references = metadata.get("ownerReferences") or []
    return f"owned by {references[0].get('kind')} {references[0].get('name')}" if references else ""


def _kept_by_mark(metadata: Mapping[str, Any]) -> str:
    """Anybody's protection counts."""
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    for name, values in PROTECTIONS:
        present = f"{annotations.get(name, '')},{labels.get(name, '')}".split(",")
        kept = next((value.strip() for value in present if value.strip() in values), "")
        if kept:
            return f"protected by {name}: {kept}"
    return ""


def _opted_in(live: Mapping[str, Any], target: Target) -> bool:
    """Whether a guarded kind may go: by the target's list or the object's annotation."""
    kind = identity_of(dict(live)).group_kind
    allowed = ((live["metadata"].get("annotations") or {}).get(ALLOW)) == "allow"
    return allowed or kind.kind in target.prune.kinds or str(kind) in target.prune.kinds


def _kept_by_kind(live: Mapping[str, Any], identity: Identity, target: Target) -> str:
    """Namespaces, CRDs and volumes hold what git can't restore."""
    if identity.group_kind == NAMESPACE and identity.name.startswith(_SYSTEM_NAMESPACES):
        return "system namespace"
    if identity.group_kind in _GUARDED and not _opted_in(live, target):
        return f"{identity.kind} is kept; to delete it set prune: {{kinds: [{identity.kind}]}} on target {target.name}"
    return ""


def _kept_by_content(identity: Identity, desired: Iterable[Identity], facts: Facts) -> str:
    """A Namespace goes only when nothing of others is in it, a CRD only without instances."""
    if identity.group_kind == NAMESPACE:
        inhabitant = next((item for item in desired if item.namespace == identity.name), None)
        if inhabitant:
            return f"still holds declared {inhabitant}"
        foreign = facts.foreign_content.get(identity.name)
        if foreign is None:
            return "what it holds could not be read"
        return f"holds what isn't ours: {', '.join(foreign[:3])}" if foreign else ""
    if identity.group_kind == CRD:
        count = facts.instances.get(identity.name)
        if count is None:
            return "its instances could not be counted"
        return f"has {count} instances; deleting it would delete them" if count else ""
    return ""


_BUILT_IN = ("", "apps", "batch", "autoscaling", "policy", "extensions")
_WEBHOOKS, _CUSTOM, _CRDS, _WORKLOADS, _SUPPORT, _HOLDERS = range(6)
_SUPPORTING = frozenset(
    {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Secret", "PriorityClass"}
)


def prune_stages(changes: Sequence[Change], bodies: Mapping[Identity, dict[str, Any]]) -> tuple[tuple[Change, ...], ...]:
    """Return stages of deletion: webhooks, custom resources, their CRDs, workloads, what those need, namespaces last.

    Operators live long enough to clear finalizers (kapp's order); higher sync waves go first; an object goes before what
    its depends-on names.
    """
    places = {change.identity: (_wave(bodies[change.identity]), _class(change.identity)) for change in changes}
    order = sorted(set(places.values()), key=lambda place: (place[1] == _HOLDERS, -place[0], place[1]))
    levels = {identity: order.index(place) for identity, place in places.items()}
    _after_dependants(levels, bodies)
    return tuple(
        tuple(sorted((c for c in changes if levels[c.identity] == level), key=lambda c: sort_key(c.identity), reverse=True))
        for level in sorted(set(levels.values()))
    )


def _class(identity: Identity) -> int:
    """Return which part of a deletion a kind belongs to."""
    if identity.group_kind == NAMESPACE or identity.kind in ("PersistentVolume", "PersistentVolumeClaim"):
        return _HOLDERS
    if identity.kind.endswith("WebhookConfiguration"):
        return _WEBHOOKS
    if identity.group_kind == CRD:
        return _CRDS
    if identity.group not in _BUILT_IN and not identity.group.endswith(".k8s.io"):
        return _CUSTOM
    return _SUPPORT if identity.kind in _SUPPORTING else _WORKLOADS


def _wave(body: dict[str, Any]) -> int:
    """Read a live object's wave; a malformed one counts as 0, for what is live can't be refused."""
    try:
        return wave_of(body)
    except ValueError:
        return 0


def _after_dependants(levels: dict[Identity, int], bodies: Mapping[Identity, dict[str, Any]]) -> None:
    """Move what is depended on behind its dependants; a cycle stops after as many rounds as there are objects."""
    marked = [identity for identity in levels if DEPENDS_ON in (bodies[identity]["metadata"].get("annotations") or {})]
    for _ in marked:
        for identity in marked:
            for need in _readable_needs(identity, bodies[identity]):
                if need in levels:
                    levels[need] = max(levels[need], levels[identity] + 1)


def _readable_needs(identity: Identity, body: dict[str, Any]) -> list[Identity]:
    """Read a live depends-on; what can't be read orders nothing."""
    try:
        return depends_on(identity, body, "")
    except Exception:  # noqa: BLE001 - a malformed live annotation must not stop the run (CVE-2026-40886)
        return []


def custom_kinds(resources: Iterable[Resource], crd: Identity) -> list[Resource]:
    """Return how the server serves the kind of a CRD (`<plural>.<group>`)."""
    return [resource for resource in resources if f"{resource.plural}.{resource.group}" == crd.name]
