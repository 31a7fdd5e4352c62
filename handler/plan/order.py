"""Stages: what must stand before what. A graph; the rank of kinds only breaks ties inside a stage.

Edges: CRD -> its objects, Namespace -> its content, Role -> its binding, ServiceAccount -> a bare Pod that runs as it,
`config.kubernetes.io/depends-on` (cli-utils), and `argocd.argoproj.io/sync-wave`: a wave waits for every lower one.
Admission webhook configurations come last (and go first), so that they don't judge what their own backend needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from handler.model.errors import PlanRefused, Problem
from handler.model.names import Identity
from handler.plan.admit import CRD, NAMESPACE, Desired

DEPENDS_ON = "config.kubernetes.io/depends-on"
SYNC_WAVE = "argocd.argoproj.io/sync-wave"
RANK = {
    kind: rank
    for rank, kind in enumerate(
        [
            "CustomResourceDefinition",
            "Namespace",
            "ClusterRole",
            "RuntimeClass",
            "PriorityClass",
            "StorageClass",
            "VolumeSnapshotClass",
            "IngressClass",
            "GatewayClass",
            "ClusterRoleBinding",
            "NetworkPolicy",
            "ResourceQuota",
            "LimitRange",
            "ServiceAccount",
            "Role",
            "RoleBinding",
            "ConfigMap",
            "Secret",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Service",
            "Deployment",
            "StatefulSet",
            "DaemonSet",
            "CronJob",
            "Job",
            "PodDisruptionBudget",
        ],
        start=-100,
    )
}
"""Flux's order of kinds; the kinds it doesn't name come after, in the middle of nowhere."""
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_ADMISSION = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"


def sort_key(identity: Identity) -> tuple[int, str, str, str, str]:
    """Rank, then group, kind, namespace, name: the order inside a stage."""
    return (RANK.get(identity.kind, 0), identity.group, identity.kind, identity.namespace, identity.name)


def stages(desired: Iterable[Desired]) -> tuple[tuple[Desired, ...], ...]:
    """Return the stages of an apply, each to be applied in parallel.

    Raises:
        PlanRefused: a cycle (its path is named), a malformed wave, an unreadable depends-on.

    """
    items = {item.identity: item for item in desired}
    bodies = {identity: item.manifest.body() for identity, item in items.items()}
    waves = _waves(items, bodies)
    edges = {identity: _edges(items[identity], bodies[identity], items) for identity in items}
    _pull_forward(waves, edges)
    levels = _levels(edges, waves)
    last = max(levels.values(), default=0) + 1
    placed = {identity: last if _is_webhook(identity) else level for identity, level in levels.items()}
    grouped = (sorted((i for i in items if placed[i] == level), key=sort_key) for level in sorted(set(placed.values())))
    return tuple(tuple(items[identity] for identity in group) for group in grouped)


def _is_webhook(identity: Identity) -> bool:
    return identity.group == _ADMISSION and identity.kind in _WEBHOOKS


def annotation(body: Mapping[str, Any], name: str) -> str:
    """Return an annotation's value, empty when absent."""
    return str(((body.get("metadata") or {}).get("annotations") or {}).get(name) or "")


def wave_of(body: Mapping[str, Any]) -> int:
    """Return an object's sync wave, 0 by default.

    Raises:
        ValueError: it isn't a whole number.

    """
    return int(annotation(body, SYNC_WAVE) or "0")


def _waves(items: Mapping[Identity, Desired], bodies: Mapping[Identity, dict[str, Any]]) -> dict[Identity, int]:
    """Read every wave, all mistakes at once."""
    waves, problems = {}, []
    for identity, body in bodies.items():
        try:
            waves[identity] = wave_of(body)
        except ValueError:
            seen = f"{SYNC_WAVE}: {annotation(body, SYNC_WAVE)!r} is not a whole number"
            problems.append(Problem(str(identity), seen, items[identity].manifest.place, 'write it as a string, e.g. "-1"'))
    if problems:
        raise PlanRefused(*problems)
    return waves


def _edges(item: Desired, body: dict[str, Any], items: Mapping[Identity, Desired]) -> tuple[Identity, ...]:
    """Return what an object waits for, as far as this run declares it."""
    wanted = [*item.needs, *_implied(item.identity, body), *depends_on(item.identity, body, item.manifest.place)]
    return tuple(dict.fromkeys(need for need in wanted if need in items and need != item.identity))


def _implied(identity: Identity, body: Mapping[str, Any]) -> list[Identity]:
    """Return the role of a binding and the service account of a bare pod: the server refuses them otherwise."""
    if identity.kind == "Pod" and not identity.group:
        account = str((body.get("spec") or {}).get("serviceAccountName") or "default")
        return [Identity("", "ServiceAccount", identity.namespace, account)]
    if identity.group == _RBAC and identity.kind.endswith("RoleBinding"):
        role = body.get("roleRef") or {}
        kind, name = str(role.get("kind")), str(role.get("name"))
        return [Identity(_RBAC, kind, identity.namespace if kind == "Role" else "", name)]
    return []


def depends_on(identity: Identity, body: Mapping[str, Any], place: str) -> list[Identity]:
    """Read `group/kind/name` and `group/namespaces/ns/kind/name`, comma separated (cli-utils).

    Raises:
        PlanRefused: a reference has another form.

    """
    found = []
    for reference in filter(None, (part.strip() for part in annotation(body, DEPENDS_ON).split(","))):
        parts = reference.split("/")
        if len(parts) == 5 and parts[1] == "namespaces":
            found.append(Identity(parts[0], parts[3], parts[2], parts[4]))
        elif len(parts) == 3:
            found.append(Identity(parts[0], parts[1], "", parts[2]))
        else:
            fix = "write group/kind/name, or group/namespaces/<namespace>/kind/name"
            raise PlanRefused.of(str(identity), f"{DEPENDS_ON}: can't read {reference!r}", place=place, fix=fix)
    return found


def _pull_forward(waves: dict[Identity, int], edges: Mapping[Identity, Sequence[Identity]]) -> None:
    """Let a Namespace or CRD of a later wave inherit the wave of the first object that needs it (as Argo CD does)."""
    for identity, needs in edges.items():
        for need in needs:
            if need.group_kind in (CRD, NAMESPACE):
                waves[need] = min(waves[need], waves[identity])


def _levels(edges: Mapping[Identity, Sequence[Identity]], waves: Mapping[Identity, int]) -> dict[Identity, int]:
    """Return each object's level: 0 stands alone, others come after what they wait for, waves one after another."""
    levels: dict[Identity, int] = {}
    floor = 0
    for wave in sorted(set(waves.values())):
        members = [identity for identity in edges if waves[identity] == wave]
        for identity in members:
            _place(identity, edges, waves, levels, floor)
        floor = max(levels[identity] for identity in members) + 1
    return levels


def _place(
    start: Identity, edges: Mapping[Identity, Sequence[Identity]], waves: Mapping[Identity, int], levels: dict[Identity, int], floor: int
) -> None:
    """Place one object after its needs, depth first without recursion."""
    path, stack = [], [(start, iter(edges[start]))] if start not in levels else []
    path = [identity for identity, _ in stack]
    while stack:
        identity, needs = stack[-1]
        pending = next((need for need in needs if need not in levels), None)
        if pending is None:
            stack.pop()
            path.pop()
            levels[identity] = max([floor, *(levels[need] + _distance(need) for need in edges[identity])])
        elif pending in path or waves[pending] > waves[identity]:
            raise _cycle([*path[path.index(pending) :], pending] if pending in path else [identity, pending, identity])
        else:
            stack.append((pending, iter(edges[pending])))
            path.append(pending)


def _distance(need: Identity) -> int:
    """Return how many stages later what needs it comes: after a CRD one is left free for what needn't wait until it is Established."""
    return 2 if need.group_kind == CRD else 1


def _cycle(path: Sequence[Identity]) -> PlanRefused:
    """Name a cycle by its path."""
    chain = " -> ".join(str(identity) for identity in path)
    fix = f"change {DEPENDS_ON} or {SYNC_WAVE} so that nothing waits for itself"
    return PlanRefused.of(str(path[0]), f"waits for itself: {chain}", fix=fix)
