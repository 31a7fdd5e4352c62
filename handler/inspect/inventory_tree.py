"""The inventory of a target as a tree: its members, below them what they own, each with how it does. Pure; `inventory_look` reads.

Law: what is shown is bounded, in nodes and in bytes, and says how much there is. Level by level the worst come first, so that what is
cut is what does well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from handler.health.kinds.pods import WITH_PODS, containers, is_stuck
from handler.health.kinds.reading import count, said
from handler.model.field_masking import without_credentials
from handler.model.health import Health, Status
from handler.model.manifest import at, items_at
from handler.model.names import GroupKind, Identity, Resource
from handler.model.to_json import fitting
from handler.model.tree import printable

MOST = 2000
"""Nodes that are shown."""
_TEXT = 300  # characters of one node's message
MISSING = "missing"
UNTOLD = "not shown: the object holds what isn't shown; its events and conditions are for those who may read it in the cluster"
_ORDER = (Status.FAILED, Status.NOT_FOUND, Status.UNKNOWN, Status.TERMINATING, Status.IN_PROGRESS, Status.CURRENT)
CRON_JOB = GroupKind("batch", "CronJob")
_POD = Resource("", "v1", "Pod", "pods", namespaced=True)
OWNED: dict[Resource, frozenset[GroupKind]] = {
    Resource("apps", "v1", "ReplicaSet", "replicasets", namespaced=True): frozenset({GroupKind("apps", "Deployment")}),
    Resource("batch", "v1", "Job", "jobs", namespaced=True): frozenset({CRON_JOB}),
    _POD: frozenset(
        {
            *(GroupKind("apps", kind) for kind in ("ReplicaSet", "StatefulSet", "DaemonSet")),
            GroupKind("", "ReplicationController"),
            GroupKind("batch", "Job"),
        }
    ),
    Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", namespaced=True): frozenset({GroupKind("", "Service")}),
}
"""What is looked for below which kinds, in this order: an owner is known before what it owns."""


def owned_below(kinds: Iterable[GroupKind]) -> list[Resource]:
    """Return what is looked for where objects of these kinds live, what those own included."""
    there, found = set(kinds), []
    for resource, owners in OWNED.items():
        if there & owners:
            there.add(resource.group_kind)
            found.append(resource)
    return found


class Role(StrEnum):
    """What an object is to its target."""

    DECLARED = "declared"
    ORPHAN = "orphan"
    """A member that the recorded commit doesn't declare."""
    MEMBER = "member"
    """The same while a run is under way, whose commit may declare it."""
    APART = "apart"
    """Declared and live, but not marked as this target's: nothing below it is looked for."""
    OWNED = "owned"
    """Below a member, by its ownerReference."""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What of a pod people look for. `reason`: why it waits or ended; `ready` of `containers`."""

    phase: str
    reason: str
    ready: int
    containers: int
    restarts: int
    node: str

    @classmethod
    def of(cls, live: Mapping[str, object]) -> PodFacts:
        """Read a live pod."""
        mains = items_at(live, "status", "containerStatuses")
        states = [at(each, "state", place, "reason") for each in containers(dict(live)) for place in ("waiting", "terminated")]
        reasons = [said(each) for each in (*states, at(live, "status", "reason")) if each and each != "Completed"]
        return cls(
            said(at(live, "status", "phase")),
            next((each for each in reasons if is_stuck(each)), reasons[0] if reasons else ""),
            sum(at(each, "ready") is True for each in mains),
            max(len(items_at(live, "spec", "containers")), len(mains)),
            sum(count({"of": each}, "of", "restartCount") for each in mains),
            said(at(live, "spec", "nodeName")),
        )


@dataclass(frozen=True, slots=True)
class SeenObject:
    """One object of a target as a look has seen it. `uid` empty: it isn't there; `owner`: uid of what it is below, empty: a root.

    `retired`: old ReplicaSets of it without pods; `revision`: a Deployment's, by which its newest ReplicaSet is known. `closed`: nothing
    that the cluster says of it is repeated (`handler.plan.closed`).
    """

    identity: Identity
    uid: str
    health: Health
    role: Role
    owner: str = ""
    created: str = ""
    pod: PodFacts | None = None
    retired: int = 0
    revision: str = ""
    closed: bool = False

    @property
    def worth(self) -> tuple[int, str, str, str]:
        """By what the worst come first."""
        identity = self.identity
        return _ORDER.index(self.health.status), identity.namespace, identity.kind, identity.name

    @property
    def has_logs(self) -> bool:
        """Whether it is a pod or has some below it, of a target's own."""
        kind = self.identity.group_kind
        return bool(self.uid) and self.role is not Role.APART and (kind in WITH_PODS or kind == CRON_JOB)


@dataclass(frozen=True, slots=True)
class InventoryNode:
    """One object in the tree. `more`: how many of its children are left out; `logs`: whether logs of it may be asked for."""

    object: str
    group: str
    kind: str
    namespace: str
    name: str
    uid: str
    state: str
    message: str
    created: str
    role: Role
    pod: PodFacts | None = None
    logs: bool = False
    retired: int = 0
    more: int = 0
    children: tuple[InventoryNode, ...] = ()


@dataclass(frozen=True, slots=True)
class InventoryTree:
    """What a target is made of. `count`: nodes there are, `shown`: of them here; `states`: of all; `notes`: what couldn't be read."""

    target: str
    commit: str
    seen: str
    count: int
    shown: int
    states: Mapping[str, int]
    roots: tuple[InventoryNode, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inventory:
    """All that one look has seen. `commit`: the recorded one; `at`: when, RFC 3339."""

    target: str
    commit: str
    at: str
    objects: tuple[SeenObject, ...]
    notes: tuple[str, ...] = ()

    def named(self, subject: str) -> SeenObject | None:
        """Return the object of the target that is called so and has logs; None: there is none."""
        return next((each for each in self.objects if each.has_logs and str(each.identity) == subject), None)

    def pods(self, top: SeenObject) -> list[SeenObject]:
        """Return the pods at and below an object, those that do worst first, of them the newest."""
        below = _by_owner(self.objects)
        found = [each for each in _all_below(top, below) if each.pod]
        newest = sorted(found, key=lambda each: each.created, reverse=True)
        return sorted(newest, key=lambda each: each.worth[0])

    def tree(self) -> InventoryTree:
        """Return the tree, cut to what may be shown."""
        below = _by_owner(self.objects)
        made = {key: self._node(each) for key, each in _first(_levels(below), MOST)}
        kept = dict(zip(made, fitting(made.values()), strict=False))
        states = Counter(_state(each) for each in self.objects)
        roots = tuple(_joined(each, kept, below) for each in below[""] if _key(each) in kept)
        count = len(self.objects)
        return InventoryTree(self.target, self.commit, self.at, count, len(kept), dict(sorted(states.items())), roots, self.notes)

    def _node(self, each: SeenObject) -> InventoryNode:
        identity = each.identity
        names = identity.group, identity.kind, identity.namespace, identity.name
        message = each.health.message
        if each.uid:  # of what isn't there the words are ours
            message = said_of(each, message, _TEXT)
        return InventoryNode(
            str(identity), *names, each.uid, _state(each), message, each.created, each.role, each.pod, each.has_logs, each.retired
        )


def said_of(about: SeenObject | None, text: str, most: int) -> str:
    """Return a cluster's text about an object fit to be shown; one that nothing is known of is shown as one that holds no secret."""
    return UNTOLD if text and about and about.closed else printable(without_credentials(text), most)


def _state(each: SeenObject) -> str:
    return MISSING if each.health.status is Status.NOT_FOUND else str(each.health.status)


def _key(each: SeenObject) -> str:
    return each.uid or f"{each.identity.group}/{each.identity}"


def _by_owner(objects: Iterable[SeenObject]) -> dict[str, list[SeenObject]]:
    found: dict[str, list[SeenObject]] = defaultdict(list)
    for each in sorted(objects, key=lambda each: each.worth):
        found[each.owner].append(each)
    return found


def _all_below(top: SeenObject, below: Mapping[str, Sequence[SeenObject]]) -> Iterator[SeenObject]:
    yield top
    for each in below.get(top.uid, ()) if top.uid else ():
        yield from _all_below(each, below)


def _levels(below: Mapping[str, Sequence[SeenObject]]) -> Iterator[SeenObject]:
    """Yield the roots, then what is right below them, and so on."""
    level = below.get("", ())
    while level:
        yield from level
        level = sorted((child for each in level if each.uid for child in below.get(each.uid, ())), key=lambda each: each.worth)


def _first(objects: Iterable[SeenObject], most: int) -> Iterator[tuple[str, SeenObject]]:
    yield from ((_key(each), each) for each, _ in zip(objects, range(most), strict=False))


def _joined(each: SeenObject, kept: Mapping[str, InventoryNode], below: Mapping[str, Sequence[SeenObject]]) -> InventoryNode:
    children = below.get(each.uid, ()) if each.uid else ()
    shown = tuple(_joined(child, kept, below) for child in children if _key(child) in kept)
    return replace(kept[_key(each)], children=shown, more=len(children) - len(shown))
