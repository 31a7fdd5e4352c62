"""Whether one live object may be deleted, and in which order. Deleting is the most dangerous thing we do.

A candidate carries our label, our identity naming exactly it, and is not declared (`compare` saw to that). Every check here only ever keeps
it. What the object itself can't say (what a Namespace holds, whether a CRD has instances) is asked for by `questions` and handed back as
PruneFacts, not counting what is `leaving`; without an answer the object stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handler.config.settings import Target
from handler.model.api_groups import is_certainly_custom
from handler.model.instance import Instance
from handler.model.names import Identity, Resource, identity_of, uid_and_version
from handler.model.plan import Action, Change
from handler.plan import retention
from handler.plan.admission import CRD, NAMESPACE, allows, listed
from handler.plan.order import ADMISSION, readable_depends_on, sort_key, wave_of
from handler.plan.steering import protections
from handler.plan.system_objects import MADE_AGAIN, is_system_object

ALLOW = "anneal.dev/prune"  # annotation on a live object: `allow` opts a guarded kind in
GUARDED = {NAMESPACE, CRD, retention.VOLUME, retention.CLAIM}
"""What goes only where it is named: it holds what git can't restore."""
PROTECTIONS = protections()  # annotations and labels that keep an object (`annotations.TABLE`); values in lower case


@dataclass(frozen=True, slots=True)
class PruneFacts:
    """What had to be asked: what stays in a Namespace, how many instances of a CRD stay. Absent keys mean: not known, so keep.

    `silent`: API groups that don't answer, so that what Namespaces hold isn't known.
    """

    content: Mapping[str, Sequence[str]] = field(default_factory=dict)
    instances: Mapping[str, int] = field(default_factory=dict)
    silent: Collection[str] = ()


def questions(candidates: Iterable[dict[str, Any]], target: Target) -> tuple[list[str], list[Identity]]:
    """Return the namespaces whose content, and the CRDs whose instances, must be known to judge the candidates."""
    identities = [identity_of(live) for live in candidates if not _kept(live, target)]
    namespaces = [identity.name for identity in identities if identity.group_kind == NAMESPACE]
    return namespaces, [identity for identity in identities if identity.group_kind == CRD]


def leaving(candidates: Iterable[dict[str, Any]], target: Target) -> frozenset[str]:
    """Return the uids of the candidates that nothing of their own keeps: only these aren't counted in a Namespace or CRD."""
    return frozenset(str(live["metadata"]["uid"]) for live in candidates if not _kept(live, target))


def needs_asking(live: dict[str, Any], target: Target, known: Collection[str]) -> bool:
    """Whether siblings must be asked about a candidate: it would go, or its kind alone keeps it.

    `known`: the uids of orphans that no sibling declared when they became that.
    """
    own = _kept_by_place(identity_of(live), target) or kept_by_itself(live, target.instance)
    return not own and (not _kept(live, target) or str(live["metadata"]["uid"]) not in known)


def judge(live: dict[str, Any], target: Target, desired: Iterable[Identity], facts: PruneFacts) -> Change:
    """Return PRUNE, or SKIP with the reason that keeps it and the line that would let it go."""
    metadata, identity = live["metadata"], identity_of(live)
    kept = _kept(live, target)
    reason, unread = (kept, False) if kept else _kept_by_content(identity, desired, facts)
    finalizers = tuple(str(name) for name in metadata.get("finalizers") or ())
    action = Action.SKIP if reason else Action.PRUNE
    since = "" if reason else str(metadata.get("deletionTimestamp") or "")
    held = f"; finalizers: {', '.join(finalizers)}" if finalizers else ""
    why = reason or (f"is being deleted already{held}" if since else "no longer declared")
    change = Change(action, identity, *uid_and_version(live), why, finalizers=finalizers, terminating=since, unread=unread)
    return retention.with_its_claims(change, live, target)


def left_to(live: dict[str, Any], sibling: str, reason: str) -> Change:
    """Return the change of a candidate that is left to a sibling."""
    return Change(Action.SKIP, identity_of(live), *uid_and_version(live), reason, sibling=sibling)


def _kept(live: dict[str, Any], target: Target) -> str:
    metadata, identity = live["metadata"], identity_of(live)
    own = _kept_by_place(identity, target) or kept_by_itself(live, target.instance)
    return own or _kept_by_kind(metadata, identity, target)


def is_outside(identity: Identity, target: Target) -> bool:
    """Whether a member is where the target's settings no longer allow one: it stays tracked."""
    return bool(_kept_by_place(identity, target))


def _kept_by_place(identity: Identity, target: Target) -> str:
    namespace = identity.name if identity.group_kind == NAMESPACE else identity.namespace
    if namespace and not allows(target, namespace):
        return f"outside: namespace {namespace} left the whitelist; it stays tracked"
    if not identity.namespace and not listed(identity.group_kind, target.cluster_scoped):
        return f"outside: {identity.group_kind} left clusterScoped; it stays tracked"
    return ""


def kept_by_itself(live: dict[str, Any], instance: Instance | None = None) -> str:
    """Return what an object says against its deletion, by whatever: its owner, its protection; empty: nothing.

    `instance`: what the target is an instance for: what that alone owns isn't another's. Only a canary's own step takes it away whatever it
    says: neither prune, nor what is made anew, nor another step, nor a hook.
    """
    metadata, identity = live["metadata"], identity_of(live)
    system = identity.group_kind == NAMESPACE and (identity.name == "default" or identity.name.startswith("kube-"))
    own = instance is not None and instance.owns(metadata.get("ownerReferences"))
    own_kept = ("" if own else _kept_by_owner(metadata)) or kept_by_mark(metadata)
    return own_kept or ("system namespace" if system else MADE_AGAIN if is_system_object(live, identity) else "")


def protection(live: Mapping[str, Any], target: Target) -> str:
    """Return what keeps an object from going with its owner: an annotation, or its kind that holds data; empty: nothing."""
    metadata = live["metadata"]
    return kept_by_mark(metadata) or _kept_by_kind(metadata, identity_of(dict(live)), target)


def _kept_by_owner(metadata: Mapping[str, Any]) -> str:
    """What another object owns goes with its owner (Rekkoner's rule)."""
    references = metadata.get("ownerReferences") or []
    return f"owned by {references[0].get('kind')} {references[0].get('name')}" if references else ""


def kept_by_mark(metadata: Mapping[str, Any]) -> str:
    """Return which annotation or label keeps an object; empty: none."""
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    for name, values in PROTECTIONS:
        present = f"{annotations.get(name, '')},{labels.get(name, '')}".split(",")
        kept = next((value.strip() for value in present if value.strip().lower() in values), "")
        if kept:
            return f"protected by {name}: {kept}"
    return ""


def _kept_by_kind(metadata: Mapping[str, Any], identity: Identity, target: Target) -> str:
    """Namespaces, CRDs and volumes hold what git can't restore: they go by the target's list or the object's annotation."""
    kind = identity.group_kind
    opted_in = (metadata.get("annotations") or {}).get(ALLOW) == "allow" or listed(kind, target.prune.kinds)
    if kind in GUARDED and not opted_in:
        return f"{kind.kind} is kept: prune.kinds of target {target.name} doesn't name it"
    return ""


def _kept_by_content(identity: Identity, desired: Iterable[Identity], facts: PruneFacts) -> tuple[str, bool]:
    """Return what keeps a Namespace or CRD, empty: nothing; and whether that is only that it can't be read."""
    if identity.group_kind == NAMESPACE:
        inhabitant = next((item for item in desired if item.namespace == identity.name), None)
        if inhabitant:
            return f"still holds declared {inhabitant}", False
        held = facts.content.get(identity.name)
        if held is None:
            return _unread(facts), True
        return f"still holds {', '.join(held[:3])}" if held else "", False
    if identity.group_kind == CRD:
        count = facts.instances.get(identity.name)
        if count is None:
            return "its instances could not be counted", True
        return f"still has instances ({count}); deleting it would delete them" if count else "", False
    return "", False


def _unread(facts: PruneFacts) -> str:
    if facts.silent:
        return f"what it holds could not be read: the API group {min(facts.silent)} doesn't answer; repair its APIService"
    return "what it holds could not be read"


_ADMISSION, _CUSTOM, _CRDS, _WORKLOADS, _SUPPORT, _HOLDERS = range(6)
_SUPPORTING = frozenset(
    {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Secret", "PriorityClass"}
)


def prune_stages(changes: Sequence[Change], bodies: Mapping[Identity, dict[str, Any]]) -> tuple[tuple[Change, ...], ...]:
    """Return stages of deletion: webhooks and policies, custom resources, CRDs, workloads, what those need, namespaces last (kapp's order).

    Higher sync waves go first; an object always goes before what its depends-on names, its Namespace, and the CRDs of its group.
    """
    places = {change.identity: (_class(change.identity), -_wave(bodies[change.identity])) for change in changes}
    order = sorted(set(places.values()), key=lambda place: (place[0] == _HOLDERS, place[0] != _ADMISSION, place[1], place[0]))
    levels = {identity: order.index(place) for identity, place in places.items()}
    _put_behind(levels, _edges(bodies, levels.keys()))
    staged: dict[int, list[Change]] = {}
    for change in sorted(changes, key=lambda change: sort_key(change.identity), reverse=True):
        staged.setdefault(levels[change.identity], []).append(change)
    return tuple(tuple(staged[level]) for level in sorted(staged))


def _class(identity: Identity) -> int:
    if identity.group_kind == NAMESPACE or identity.kind in ("PersistentVolume", "PersistentVolumeClaim"):
        return _HOLDERS
    if identity.group == ADMISSION:
        return _ADMISSION
    if identity.group_kind == CRD:
        return _CRDS
    if is_certainly_custom(identity.group):
        return _CUSTOM
    return _SUPPORT if identity.kind in _SUPPORTING else _WORKLOADS


def _wave(body: dict[str, Any]) -> int:
    try:
        return wave_of(body)
    except ValueError:
        return 0


def _edges(bodies: Mapping[Identity, dict[str, Any]], going: Collection[Identity]) -> list[tuple[Identity, Identity]]:
    crds: dict[str, list[Identity]] = {}
    for identity in going:
        if identity.group_kind == CRD:
            crds.setdefault(identity.name.partition(".")[2], []).append(identity)
    found = []
    for identity in going:
        namespace = Identity(NAMESPACE.group, NAMESPACE.kind, "", identity.namespace)
        wanted = [namespace, *readable_depends_on(bodies[identity]), *crds.get(identity.group, ())]
        found += [(identity, need) for need in wanted if need in going]
    return found


def _put_behind(levels: dict[Identity, int], edges: Sequence[tuple[Identity, Identity]]) -> None:
    """Move what is needed behind what needs it; a cycle stops after as many rounds as there are objects."""
    for _ in levels:
        late = [(first, then) for first, then in edges if levels[then] <= levels[first]]
        if not late:
            return
        for first, then in late:
            levels[then] = levels[first] + 1


def custom_kinds(resources: Iterable[Resource], crd: Identity) -> list[Resource]:
    """Return how the server serves the kind of a CRD (`<plural>.<group>`)."""
    return [resource for resource in resources if f"{resource.plural}.{resource.group}" == crd.name]
