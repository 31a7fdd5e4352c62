"""Stages: what must stand before what. A graph; the rank of kinds only breaks ties inside a stage.

Edges: CRD -> its objects, Namespace -> its content, Role -> its binding, ServiceAccount and classes -> a bare Pod that names them,
`config.kubernetes.io/depends-on` (cli-utils), and `argocd.argoproj.io/sync-wave`: a wave waits for every lower one. What comes after
an author's edge is written when all that it waits for is healthy (`Order.awaits`). A `Sync` hook stands in the last stage of its wave.
Admission webhook configurations and policies come last (and go first), lest they judge what their own backend needs, or refuse half of what
was validated before they stood. The workload that runs this very handler comes after everything: its rollout may end the run, and the
successor finds the rest done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handler.model.errors import PlanRefused, Problem
from handler.model.manifest import at
from handler.model.names import Identity
from handler.model.numbers import whole
from handler.model.rollout import Mode
from handler.model.tree import printable
from handler.plan.admission import CRD, NAMESPACE, Desired

DEPENDS_ON = "config.kubernetes.io/depends-on"
SYNC_WAVE = "argocd.argoproj.io/sync-wave"
HOOK_WEIGHT = "helm.sh/hook-weight"
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
"""Flux's order of kinds; those it doesn't name come after."""
ADMISSION = "admissionregistration.k8s.io"
"""The group of webhook configurations, policies and their bindings: from the moment that they are written they judge other writes."""
_RBAC = "rbac.authorization.k8s.io"
_APPS = "apps"
_CLASSES = (("scheduling.k8s.io", "PriorityClass", "priorityClassName"), ("node.k8s.io", "RuntimeClass", "runtimeClassName"))
NAMING = ("serviceAccountName", "serviceAccount", *(field for _, _, field in _CLASSES))
"""Fields of a pod's spec that name what the server looks for when it is created."""
_SHOWN = 120  # characters of an unreadable annotation that are shown


def sort_key(identity: Identity) -> tuple[int, str, str, str, str]:
    """Rank, then group, kind, namespace, name: the order inside a stage."""
    return (RANK.get(identity.kind, 0), identity.group, identity.kind, identity.namespace, identity.name)


@dataclass(frozen=True, slots=True)
class Order:
    """What stands before what. `stages`: each to be applied in parallel; `awaits`: what must be healthy before an object is written."""

    stages: tuple[tuple[Desired, ...], ...]
    awaits: Mapping[Identity, frozenset[Identity]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def order(
    desired: Iterable[Desired],
    own: str = "",
    first: Collection[Identity] = (),
    others: Collection[Identity] = (),
    later: Collection[Identity] = (),
) -> Order:
    """Put an apply in order. Raises PlanRefused: a cycle (its path is named); every malformed wave and unreadable depends-on.

    `own`: namespace/name of the handler's own Deployment, or empty. `first`: makes a stage of its own before everything.
    `others`: what this run declares besides, and puts in order elsewhere; `later`: what of it certainly comes after all of this.
    """
    declared = sorted(desired, key=lambda item: sort_key(item.identity))
    items = {item.identity: item for item in declared if item.identity not in first}
    bodies = {identity: item.manifest.body() for identity, item in items.items()}
    waves, named = _read(items, bodies)
    strangers = [(identity, need) for identity, needs in named.items() for need in needs if need not in items]
    named = {identity: tuple(need for need in needs if need in items) for identity, needs in named.items()}
    edges = {identity: (*(need for need in item.needs if need in items), *named[identity]) for identity, item in items.items()}
    _pull_forward(waves, edges)
    for identity, body in bodies.items():
        edges[identity] += tuple(need for need in implied(identity, body) if need in items and waves[need] <= waves[identity])
    levels = _levels(edges, waves)
    needed = {need for needs in edges.values() for need in needs}
    late = {identity: _lateness(identity, own) for identity in items if identity not in needed and _lateness(identity, own)}
    staged = _staged(items, levels, needed, waves, late)
    begin = tuple(item for item in declared if item.identity in first)
    known = {*first, *others}
    unseen = [(one, need) for one, need in strangers if need in later or need not in known]
    why = {True: "whose step in the Rollout comes later", False: "which isn't declared here"}
    notes = [f"{one}: {DEPENDS_ON} names {need}, {why[need in later]}; it isn't waited for" for one, need in unseen]
    return Order((begin, *staged) if begin else staged, _awaits(items, waves, named, late), tuple(notes))


def _staged(
    items: Mapping[Identity, Desired],
    levels: Mapping[Identity, int],
    needed: Collection[Identity],
    waves: Mapping[Identity, int],
    late: Mapping[Identity, int],
) -> tuple[tuple[Desired, ...], ...]:
    last = max(levels.values(), default=0) + 1
    tops: dict[int, int] = {}
    for identity, level in levels.items():
        tops[waves[identity]] = max(level, tops.get(waves[identity], 0))
    staged: dict[int, list[Desired]] = {}
    for identity, item in items.items():
        level = tops[waves[identity]] if item.mode is Mode.HOOK and identity not in needed else levels[identity]
        staged.setdefault(last + late[identity] if identity in late else level, []).append(item)
    return tuple(tuple(staged[level]) for level in sorted(staged))


def _awaits(
    items: Mapping[Identity, Desired],
    waves: Mapping[Identity, int],
    named: Mapping[Identity, Sequence[Identity]],
    late: Collection[Identity],
) -> dict[Identity, frozenset[Identity]]:
    lasting = {identity for identity, item in items.items() if item.mode is not Mode.HOOK and identity not in late}
    numbers = sorted(set(waves.values()))
    lower = {number: frozenset(one for one in lasting if waves[one] < number) for number in numbers}
    found = {identity: lower[waves[identity]] | {need for need in named[identity] if need in lasting} for identity in items}
    return {identity: needs for identity, needs in found.items() if needs}


def _lateness(identity: Identity, own: str) -> int:
    """Return how late what nothing else waits for comes: 0 where the graph says, 1 after all of that, 2 after those."""
    if identity.group == _APPS and f"{identity.namespace}/{identity.name}" == own:
        return 2
    return int(identity.group == ADMISSION)


def wave_of(body: Mapping[str, Any]) -> int:
    """Return an object's sync wave, else a Helm hook's weight (Argo CD's rule), 0 by default. Raises ValueError: no whole number."""
    return whole(_annotation(body, SYNC_WAVE) or _annotation(body, HOOK_WEIGHT) or "0")


def _read(
    items: Mapping[Identity, Desired], bodies: Mapping[Identity, dict[str, Any]]
) -> tuple[dict[Identity, int], dict[Identity, tuple[Identity, ...]]]:
    waves, named, problems = {}, {}, []
    for identity, body in bodies.items():
        place = items[identity].manifest.place
        try:
            waves[identity] = wave_of(body)
        except ValueError:
            name = SYNC_WAVE if _annotation(body, SYNC_WAVE) else HOOK_WEIGHT
            seen = f"{name}: {printable(_annotation(body, name), _SHOWN)!r} is not a whole number"
            problems.append(Problem(str(identity), seen, place, 'write it as a string, e.g. "-1"'))
        try:
            named[identity] = tuple(depends_on(body))
        except ValueError as error:
            fix = "write group/kind/name, or group/namespaces/<namespace>/kind/name"
            problems.append(Problem(str(identity), f"{DEPENDS_ON}: {error}", place, fix))
    if problems:
        raise PlanRefused(*problems)
    return waves, named


def implied(identity: Identity, body: Mapping[str, Any]) -> list[Identity]:
    """Return what the server wants first: a binding's role, a bare pod's account and classes; a wave may say otherwise."""
    if identity.kind == "Pod" and not identity.group:
        spec = at(body, "spec")
        account = Identity("", "ServiceAccount", identity.namespace, str(at(spec, "serviceAccountName") or "default"))
        classes = [(Identity(group, kind, "", str(at(spec, field) or ""))) for group, kind, field in _CLASSES]
        return [account, *(one for one in classes if one.name)]
    if identity.group == _RBAC and identity.kind.endswith("RoleBinding"):
        kind, name = str(at(body, "roleRef", "kind")), str(at(body, "roleRef", "name"))
        return [Identity(_RBAC, kind, identity.namespace if kind == "Role" else "", name)]
    return []


def depends_on(body: Mapping[str, Any]) -> list[Identity]:
    """Read `group/kind/name` and `group/namespaces/ns/kind/name`, comma separated (cli-utils). Raises ValueError: another form."""
    found = []
    for reference in filter(None, (part.strip() for part in _annotation(body, DEPENDS_ON).split(","))):
        parts = reference.split("/")
        if len(parts) == 5 and parts[1] == "namespaces":
            found.append(Identity(parts[0], parts[3], parts[2], parts[4]))
        elif len(parts) == 3:
            found.append(Identity(parts[0], parts[1], "", parts[2]))
        else:
            raise ValueError(f"can't read {printable(reference, _SHOWN)!r}")
    return found


def readable_depends_on(body: Mapping[str, Any]) -> list[Identity]:
    """Read an object's depends-on; one that can't be read orders nothing and must not stop the run (CVE-2026-40886)."""
    try:
        return depends_on(body)
    except ValueError:
        return []


def _annotation(body: Mapping[str, Any], name: str) -> str:
    return str(at(body, "metadata", "annotations", name) or "")


def _pull_forward(waves: dict[Identity, int], edges: Mapping[Identity, Sequence[Identity]]) -> None:
    """Let a Namespace or CRD of a later wave inherit the wave of the first object that needs it (as Argo CD does)."""
    for identity, needs in edges.items():
        for need in needs:
            if need.group_kind in (CRD, NAMESPACE):
                waves[need] = min(waves[need], waves[identity])


def _levels(edges: Mapping[Identity, Sequence[Identity]], waves: Mapping[Identity, int]) -> dict[Identity, int]:
    levels: dict[Identity, int] = {}
    floor = 0
    for wave in sorted(set(waves.values())):
        members = [identity for identity in edges if waves[identity] == wave]
        for identity in members:
            if identity not in levels:
                _place(identity, edges, waves, levels, floor)
        floor = max(levels[identity] for identity in members) + 1
    return levels


def _place(
    start: Identity, edges: Mapping[Identity, Sequence[Identity]], waves: Mapping[Identity, int], levels: dict[Identity, int], floor: int
) -> None:
    path = {start: iter(edges[start])}
    while path:
        identity = next(reversed(path))
        pending = next((need for need in path[identity] if need not in levels), None)
        if pending is None:
            del path[identity]
            levels[identity] = max([floor, *(levels[need] + _distance(need) for need in edges[identity])])
        elif pending in path:
            raise _cycle([*list(path)[list(path).index(pending) :], pending])
        elif waves[pending] > waves[identity]:
            raise _cycle([identity, pending, identity])
        else:
            path[pending] = iter(edges[pending])


def _distance(need: Identity) -> int:
    return 2 if need.group_kind == CRD else 1


def _cycle(path: Sequence[Identity]) -> PlanRefused:
    chain = " -> ".join(str(identity) for identity in path)
    fix = f"change {DEPENDS_ON} or {SYNC_WAVE} so that nothing waits for itself"
    return PlanRefused.of(str(path[0]), f"waits for itself: {chain}", fix=fix)
