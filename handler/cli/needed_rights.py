"""The least rights that a target needs, as values: what `rbac` prints and `check` asks the API server for. Pure.

Two identities: the handler's own keeps state and Lease; the target's (the impersonated one, or the same) lists and writes objects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from handler.app.record_places import former_places
from handler.config.secrets import ALL, references
from handler.config.settings import Settings, Target
from handler.config.target_order import promoters
from handler.health.kinds.pods import WITH_PODS
from handler.health.kstatus import ALWAYS_HEALTHY
from handler.inspect.inventory_tree import CRON_JOB, owned_below
from handler.model.names import GroupKind, Resource, identity_of, state_name
from handler.model.pod_secrets import mounted_secrets
from handler.plan.admission import CRD, NAMESPACE, listed
from handler.plan.retention import CLAIM, STATEFUL_SET, VOLUME, deletes_claims
from handler.state.heartbeat import heartbeat_name

RBAC = "rbac.authorization.k8s.io"
_POD = GroupKind("", "Pod")
WRITES = ("create", "delete", "get", "list", "patch", "watch")
"""patch and create: server-side apply; delete: prune; list and watch: the plan and the wait; get: adoption and second looks."""


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """Some verbs on one resource. `namespace` empty: cluster-wide; `names` empty: all objects of it."""

    namespace: str
    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NeededKinds:
    """What a target is made of. `kinds`: desired and recorded; `namespaces`: where (`*`: everywhere); `bodies`: what git declares.

    `undeclared`: the kinds of which exclusive namespaces may hold orphans, and those that no namespace has and that may name such.
    """

    kinds: tuple[Resource, ...]
    namespaces: tuple[str, ...]
    bodies: tuple[dict[str, Any], ...] = ()
    undeclared: tuple[Resource, ...] = ()


_CLEARS = ("delete", "get", "list", "watch")
_RECORD = (("", "configmaps"), ("coordination.k8s.io", "leases"))


def own_grants(settings: Settings, target: Target) -> tuple[Grant, ...]:
    """Return what the handler itself must be able to do for a target.

    `list` and `watch` are for overviews, surveys and health: neither can be granted by name. Of the targets that it depends on the records
    are read, where they are on its cluster.
    """
    where, name = settings.state_namespace, state_name(target.name)
    grants = [
        Grant("", "", "namespaces", ("get",), ("kube-system",)),
        Grant(where, "", "configmaps", ("create", "list", "watch")),
        Grant(where, "", "configmaps", ("get", "update"), (name,)),
        Grant(where, "coordination.k8s.io", "leases", ("create",)),
        Grant(where, "coordination.k8s.io", "leases", ("get", "update"), (name, heartbeat_name(settings.installation))),
    ]
    beside = [each for each in settings.awaited((target,)) if each.cluster == target.cluster]
    if beside:
        grants.append(Grant(where, "", "configmaps", ("get",), tuple(sorted(state_name(each.name) for each in beside))))
    grants += [grant for each in (target, *beside) for grant in promoter_reads(settings, each)]  # which commit each should be on
    for place in former_places(settings, target):  # a takeover ends with the deletion of the record before
        grants.append(Grant(place.namespace, "coordination.k8s.io", "leases", ("create",)))
        grants += [Grant(place.namespace, *kind, ("get", "update", "delete"), (state_name(place.name),)) for kind in _RECORD]
    accounts = [target.impersonate.service_account] if target.impersonate else []
    accounts += [target.pull_requests.identity] if target.pull_requests else []
    for namespace, _, account in (each.partition("/") for each in accounts):
        grants.append(Grant(namespace, "", "serviceaccounts", ("impersonate",), (account,)))
    return (*grants, *(() if is_elsewhere(target) else secret_reads(settings, target)))


def promoter_reads(settings: Settings, target: Target) -> Iterator[Grant]:
    """Yield what must be read, on the target's own cluster, of those whose proven commits it follows: their records, and the heartbeat."""
    promoted = target.revision.promoted
    if promoted is None or promoted.cluster:
        return
    where = promoted.state_namespace or settings.state_namespace
    names = tuple(sorted(map(state_name, promoters(settings, target))))
    yield Grant(where, "", "configmaps", ("get",), names)
    yield Grant(where, "coordination.k8s.io", "leases", ("get",), (heartbeat_name(promoted.installation or settings.installation),))


def is_elsewhere(target: Target) -> bool:
    """Whether a target's cluster may be another one than the handler's own, which alone holds the Secrets that are referred to."""
    return bool(target.cluster.kubeconfig or target.cluster.eks or target.cluster.context)


def secret_reads(settings: Settings, target: Target) -> Iterator[Grant]:
    """Yield, of the handler's own cluster, the Secrets that the configuration refers to for this target; its kubeconfig may be one."""
    named: dict[str, set[str]] = defaultdict(set)
    for ref in references(replace(settings, targets=(target,)), ALL | {"clusters"}):
        if ref.kubernetes_secret:
            namespace, name, _ = ref.kubernetes_secret.split("/", 2)
            named[namespace].add(name)
    yield from (Grant(namespace, "", "secrets", ("get",), tuple(sorted(names))) for namespace, names in sorted(named.items()))


def target_grants(target: Target, needed: NeededKinds) -> tuple[Grant, ...]:
    """Return what the target's identity must be able to do: exactly the kinds that it has or wants, where it may have them."""
    scopes = ("",) if "*" in needed.namespaces else tuple(sorted(set(needed.namespaces)))
    found = {Grant(scope, kind.group, kind.plural, WRITES) for kind in needed.kinds for scope in (scopes if kind.namespaced else ("",))}
    found |= set(_looks_before_pruning(target, needed, scopes))
    found |= set(_claims_along(target, needed, scopes))
    if target.rollback.on_failure and STATEFUL_SET in {kind.group_kind for kind in needed.kinds}:  # pods that stay at a failed revision
        found |= {Grant(scope, "", "pods", ("delete", "get", "list")) for scope in scopes}
    found |= set(_total_control(target, needed))
    found |= set(_escalations(needed.bodies))
    found |= set(value_reads(target))
    return tuple(sorted(found))


def value_reads(target: Target) -> Iterator[Grant]:
    """Yield the ConfigMaps and Secrets that values and variables are taken from: the target's identity reads them, by name."""
    named: dict[str, set[str]] = defaultdict(set)
    sources = [(each.kind, each.name) for each in target.renderer.values_from]
    sources += [(each.kind, each.name) for each in (target.post_build.substitute_from if target.post_build else ())]
    for kind, name in sources:
        named[f"{kind.lower()}s"].add(name)
    yield from (Grant(target.namespace, "", resource, ("get",), tuple(sorted(names))) for resource, names in sorted(named.items()))


def wanted_grants(target: Target, needed: NeededKinds) -> tuple[Grant, ...]:
    """Return what the target's identity should read to explain what isn't healthy; without it reports are shorter.

    Logs, and the Secrets whose values are masked in them, are for records that have them (`evidence: {logs: record}`).
    """
    kinds = {kind.group_kind for kind in needed.kinds}
    if not kinds - ALWAYS_HEALTHY:
        return ()
    reads: list[tuple[str, str, tuple[str, ...]]] = [("", "events", ("list",))]
    if kinds & WITH_PODS:
        reads += [("", "pods", ("get", "list"))]
    recorded = bool(kinds & WITH_PODS) and target.evidence.logs == "record"
    reads += [("", "pods/log", ("get",))] if recorded else []
    scopes = ("",) if "*" in needed.namespaces else tuple(sorted(set(needed.namespaces)))
    found = [Grant(scope, group, resource, verbs) for scope in scopes for group, resource, verbs in reads]
    return tuple(sorted([*found, *(_mounted(scopes, needed.bodies) if recorded else ())]))


def page_grants(needed: NeededKinds) -> tuple[Grant, ...]:
    """Return what the target's identity should read for the page: what its objects own, their events, and logs with what masks them."""
    scopes = ("",) if "*" in needed.namespaces else tuple(sorted(set(needed.namespaces)))
    owned = owned_below(kind.group_kind for kind in needed.kinds)
    reads: list[tuple[str, str, tuple[str, ...]]] = [
        ("", "events", ("list",)),
        *((each.group, each.plural, ("list",)) for each in owned if each.kind != "Pod"),
    ]
    if any(each.kind == "Pod" for each in owned) or _POD in {kind.group_kind for kind in needed.kinds}:
        reads += [("", "pods", ("get", "list")), ("", "pods/log", ("get",))]
    found = [Grant(scope, group, resource, verbs) for scope in scopes for group, resource, verbs in reads]
    return tuple(sorted([*found, *_mounted(scopes, needed.bodies)]))


def _mounted(scopes: Sequence[str], bodies: Iterable[dict[str, Any]]) -> Iterator[Grant]:
    """Yield, by name, the Secrets that the declared workloads give to their containers."""
    named: dict[str, set[str]] = defaultdict(set)
    for body in bodies:
        if identity_of(body).group_kind in WITH_PODS | {CRON_JOB}:
            named[str(body["metadata"].get("namespace") or "") if "" not in scopes else ""] |= mounted_secrets(body.get("spec"))
    yield from (Grant(scope, "", "secrets", ("get",), tuple(sorted(named[scope]))) for scope in scopes if named[scope])


def _looks_before_pruning(target: Target, needed: NeededKinds, scopes: Sequence[str]) -> Iterator[Grant]:
    """Yield what must be listed before a Namespace or a CRD may go: all that is in it."""
    kinds = {kind.group_kind for kind in needed.kinds}
    if NAMESPACE in kinds and {"Namespace"} & set(target.prune.kinds):
        yield from (Grant(scope, "*", "*", ("list",)) for scope in scopes)
    if CRD in kinds and {CRD.kind, str(CRD)} & set(target.prune.kinds):
        yield from (Grant("", kind.group, kind.plural, ("list",)) for kind in needed.kinds if _is_custom(kind, needed.bodies))


def _claims_along(target: Target, needed: NeededKinds, scopes: Sequence[str]) -> Iterator[Grant]:
    """Yield what it takes to know which claims and volumes go along, and to let claims go first; of which pods, where they are scaled."""
    kinds, opened = {kind.group_kind for kind in needed.kinds}, listed(CLAIM, target.prune.kinds)
    if STATEFUL_SET in kinds:
        lets_go = any(deletes_claims(body, "whenDeleted") for body in needed.bodies)
        verbs = (*(["get"] if opened else []), "list", *(["patch"] if lets_go else []))
        yield from (Grant(scope, CLAIM.group, "persistentvolumeclaims", verbs) for scope in scopes)
    if any(deletes_claims(body, "whenScaled") for body in needed.bodies):
        yield from (Grant(scope, "", "pods", ("get",)) for scope in scopes)
    if {STATEFUL_SET, CLAIM} & kinds and opened:
        yield Grant("", VOLUME.group, "persistentvolumes", ("get",))


def _total_control(target: Target, needed: NeededKinds) -> Iterator[Grant]:
    """Yield what exclusive namespaces need of kinds that git declares nothing of: to clear them; of what no namespace has, to list it."""
    known = {kind.group_kind for kind in needed.kinds}
    others = [kind for kind in needed.undeclared if kind.group_kind not in known]
    yield from (Grant("", kind.group, kind.plural, ("list",)) for kind in others if not kind.namespaced)
    yield from (Grant(space, each.group, each.plural, _CLEARS) for space in target.exclusive for each in others if each.namespaced)


def _is_custom(kind: Resource, bodies: Iterable[dict[str, Any]]) -> bool:
    return any(body.get("kind") == CRD.kind and body["metadata"].get("name") == f"{kind.plural}.{kind.group}" for body in bodies)


def _escalations(bodies: Iterable[dict[str, Any]]) -> Iterator[Grant]:
    """Yield `escalate` on declared roles and `bind` on bound ones (RBAC's privilege escalation prevention)."""
    roles: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for body in bodies:
        namespace = str(body["metadata"].get("namespace") or "")
        kind, reference = body.get("kind"), body.get("roleRef") or {}
        if kind in ("Role", "ClusterRole"):
            roles[namespace if kind == "Role" else "", f"{kind.lower()}s", "escalate"].add(str(body["metadata"]["name"]))
        elif kind in ("RoleBinding", "ClusterRoleBinding"):
            scope = namespace if kind == "RoleBinding" else ""
            roles[scope, f"{str(reference.get('kind')).lower()}s", "bind"].add(str(reference.get("name")))
    for (scope, plural, verb), names in roles.items():
        yield Grant(scope, RBAC, plural, (verb,), tuple(sorted(names)))


# --- as objects
def documents(name: str, grants: Iterable[Grant], subject: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a Role or ClusterRole for each scope, each with its binding to a subject."""
    by_scope: dict[str, list[Grant]] = defaultdict(list)
    for grant in grants:
        by_scope[grant.namespace].append(grant)
    return [document for scope in sorted(by_scope) for document in _role(name, scope, by_scope[scope], subject)]


def _role(name: str, scope: str, grants: Sequence[Grant], subject: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    kind = "Role" if scope else "ClusterRole"
    metadata = {"name": name, **({"namespace": scope} if scope else {})}
    yield {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": _rules(grants)}
    reference = {"apiGroup": RBAC, "kind": kind, "name": name}
    yield {"apiVersion": f"{RBAC}/v1", "kind": f"{kind}Binding", "metadata": metadata, "roleRef": reference, "subjects": [dict(subject)]}


def _rules(grants: Sequence[Grant]) -> list[dict[str, Any]]:
    merged: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for grant in sorted(grants):
        merged[grant.group, grant.verbs, grant.names].append(grant.resource)
    return [
        {"apiGroups": [group], "resources": resources, **({"resourceNames": list(names)} if names else {}), "verbs": list(verbs)}
        for (group, verbs, names), resources in sorted(merged.items())
    ]
