"""Reads the inventory of a target from its cluster, with the target's own identity: members by label, below them what they own.

    members        LIST of each recorded kind by our label, in the target's namespaces
    what they own  LIST of the kinds of `inventory_tree.OWNED`, in namespaces where an owner lives
    what lacks     declared, and not among the members: asked for by name

Law: an object is below another only by an ownerReference with that one's uid, in its namespace: names and labels attach nothing. What may
not be read is a note. Of what is read only what a node needs is kept, page by page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from handler.app.build import Handler
from handler.cluster.api import Api
from handler.cluster.live import Listing, Object, pages, probe
from handler.cluster.parallel import parallel
from handler.config.settings import Target
from handler.engine.health.target_health import MISSING, expressed, removed_jobs
from handler.engine.planner.members import Members
from handler.engine.run.former_record import former_marks
from handler.health.kinds.reading import said
from handler.health.kstatus import SELF_REMOVED, judge
from handler.inspect.inventory_tree import OWNED, Inventory, PodFacts, Role, SeenObject
from handler.model.advice import advice
from handler.model.errors import AccessDenied, AnnealError
from handler.model.health import Health, Status
from handler.model.manifest import at, items_at
from handler.model.names import GroupKind, Identity, Resource, identity_of
from handler.model.numbers import many
from handler.plan.closed import holds_secrets
from handler.plan.inventory import Membership, TargetMarks, is_member
from handler.state.record import State
from handler.state.record_format import stamp

_REPLICA_SET = GroupKind("apps", "ReplicaSet")
_POD = GroupKind("", "Pod")
_PAGES = 20  # of one LIST of a namespace, in which others' objects are, too
_NAMESPACES = 40  # in which one kind is looked for
_ASKED = 100  # declared objects that are asked for by name
_AT_ONCE = 4
_REVISION = "deployment.kubernetes.io/revision"
_UNMARKED = "is live, but isn't marked as this target's"
_UNREAD = Health(Status.UNKNOWN, "its kind can't be listed now")


def look(handler: Handler, target: Target, state: State) -> Inventory:
    """Look at a target's cluster. `state`: its record. Raises AnnealError: the cluster doesn't answer."""
    return _Look(handler, target, state).seen()


@dataclass(slots=True)
class _Look:
    """One look as it goes on. `denied`: recorded kinds that can't be listed; `known`: what the record names."""

    handler: Handler
    target: Target
    state: State
    api: Api = field(init=False)
    now: float = field(init=False)
    notes: list[str] = field(default_factory=list)
    objects: dict[str, SeenObject] = field(default_factory=dict)
    denied: set[GroupKind] = field(default_factory=set)
    declared: frozenset[Identity] = field(init=False)
    known: frozenset[Identity] = field(init=False)

    def __post_init__(self) -> None:
        self.api = self.handler.brief_api(self.target, impersonated=True)
        self.now = self.api.server_time()
        self.declared = frozenset(self.state.declared)
        self.known = self.declared | {each.identity for each in self.state.orphans}

    def seen(self) -> Inventory:
        self._members()
        absent = list(self._absent())
        for resource, owners in OWNED.items():
            self._owned(resource, owners)
        objects = (*self.objects.values(), *absent)
        return Inventory(self.target.name, self.state.commit, stamp(self.now), objects, tuple(self.notes))

    # --- members
    def _members(self) -> None:
        settings, target = self.handler.settings, self.target
        membership = Membership(TargetMarks.of(target.name, settings.state_namespace), former_marks(self.state.former))
        scopes = self.handler.dependencies(target.name).planner.scopes
        members = Members(self.api, self.handler.discovery(target), target, membership, scopes)
        kinds = sorted(self.state.kinds - set(self._unserved()))
        for kind, found in zip(kinds, parallel([partial(members.listed, {kind}) for kind in kinds], _AT_ONCE), strict=True):
            if isinstance(found, AccessDenied):
                self.denied.add(kind)
                self._note(str(kind), found)
            elif isinstance(found, AnnealError):
                raise found
            else:
                ours = [each for each in found if is_member(each, identity_of(each), membership)]
                placed = [each for each in ours if self._may_be_in(identity_of(each))]
                if len(placed) < len(ours):
                    self.notes.append(f"{kind}: {len(ours) - len(placed)} marked as this target's in other namespaces than it may use")
                self._keep([(each, self._role(identity_of(each)), "") for each in placed])

    def _unserved(self) -> Iterator[GroupKind]:
        """Yield the kinds of groups whose API doesn't answer: their objects aren't known now."""
        discovery = self.handler.discovery(self.target)
        for kind in sorted(self.state.kinds):
            if kind.group in discovery.stale and discovery.preferred(kind) is None:
                self.denied.add(kind)
                self.notes.append(f"{kind}: its API doesn't answer")
                yield kind

    def _may_be_in(self, identity: Identity) -> bool:
        """Whether a member may stand where it does: marks are text, which anything with rights there may write."""
        allowed, space = self.target.namespaces, identity.namespace
        return not space or space in allowed or "*" in allowed or identity in self.known

    def _role(self, identity: Identity) -> Role:
        if identity in self.declared:
            return Role.DECLARED
        return Role.ORPHAN if identity in self.known or self.state.attempt is None else Role.MEMBER

    def _absent(self) -> Iterator[SeenObject]:
        """Yield what is declared and isn't there; what lives unmarked is kept beside the members."""
        live = {each.identity for each in self.objects.values()}
        gone = sorted(self.declared - live)
        unmarked = self._asked([each for each in gone if each.group_kind not in self.denied])
        self._keep([(each, Role.APART, "") for each in unmarked.values()])
        removed = removed_jobs(self.state, self.handler.custom_health(self.target))
        out = frozenset(self.state.health.apart or ())
        for each in gone:
            health = _UNREAD if each.group_kind in self.denied else SELF_REMOVED if each in removed else MISSING
            if each not in unmarked and each not in out:
                yield SeenObject(each, "", health, Role.DECLARED)
        left = sum(each in out and each not in unmarked for each in gone)
        if left:
            self.notes.append(f"{many(left, 'declared object')} not shown: hooks that aren't there now, or what is left to others")

    def _asked(self, gone: Sequence[Identity]) -> dict[Identity, Object]:
        discovery = self.handler.discovery(self.target)
        served = [(found, each.namespace, each.name) for each in gone if (found := discovery.preferred(each.group_kind))]
        if len(served) > _ASKED:
            self.notes.append(f"{len(served)} declared objects aren't among the members; whether one lives unmarked wasn't asked")
            return {}
        try:
            return probe(self.api, served)
        except AnnealError as error:
            self._note("what isn't among the members", error)
            return {}

    # --- what they own
    def _owned(self, resource: Resource, owners: frozenset[GroupKind]) -> None:
        tops = {key: each for key, each in self.objects.items() if each.identity.group_kind in owners and each.role is not Role.APART}
        spaces = sorted({each.identity.namespace for each in tops.values()})
        if len(spaces) > _NAMESPACES:
            self.notes.append(f"{resource.kind}: looked for in {_NAMESPACES} of {len(spaces)} namespaces")
        read = [partial(self._below, resource, space, tops) for space in spaces[:_NAMESPACES]]
        for space, found in zip(spaces, parallel(read, _AT_ONCE), strict=False):
            if isinstance(found, AnnealError):
                self._note(f"{resource.kind} of {space}", found)

    def _below(self, resource: Resource, space: str, tops: Mapping[str, SeenObject]) -> None:
        """Read a namespace's objects of a kind, and keep those that one of `tops` owns."""
        for number, page in enumerate(pages(self.api, Listing(resource, space))):
            if number >= _PAGES:
                self.notes.append(f"{resource.kind} of {space}: there are more than the first {_PAGES} pages, which were read")
                return
            mine = [(each, owner) for each in page if (owner := _owner(each, space, tops))]
            self._keep([(each, Role.OWNED, owner) for each, owner in mine if not self._is_retired(each, owner)])

    def _is_retired(self, live: Object, owner: str) -> bool:
        """Whether it is an old ReplicaSet without pods: those are counted."""
        top = self.objects[owner]
        if identity_of(live).group_kind != _REPLICA_SET or at(live, "spec", "replicas") or at(live, "status", "replicas"):
            return False
        if at(live, "metadata", "annotations", _REVISION) == top.revision:
            return False
        self.objects[owner] = replace(top, retired=top.retired + 1)
        return True

    # --- one by one
    def _keep(self, found: list[tuple[Object, Role, str]]) -> None:
        """Judge live objects, and keep of each what its node needs. A member that is owned as well stays a root."""
        custom = self.handler.custom_health(self.target)
        new = [each for each in found if str(each[0]["metadata"].get("uid")) not in self.objects]
        said_so = expressed(custom, [live for live, *_ in new if custom.covers(identity_of(live).group_kind)])
        for live, role, owner in new:
            identity = identity_of(live)
            health = said_so.get(identity) or judge(live, 0, self.now)
            if role is Role.APART:
                health = replace(health, message="; ".join(filter(None, (_UNMARKED, health.message))))
            uid, pod = str(live["metadata"].get("uid")), PodFacts.of(live) if identity.group_kind == _POD else None
            created, revision = (said(at(live, "metadata", *steps)) for steps in (("creationTimestamp",), ("annotations", _REVISION)))
            closed = identity in self.state.health.closed or holds_secrets(identity.group_kind, live)
            closed = closed or (owner in self.objects and self.objects[owner].closed)
            self.objects[uid] = SeenObject(identity, uid, health, role, owner, created, pod, revision=revision, closed=closed)

    def _note(self, what: str, error: AnnealError) -> None:
        problem = error.problems[0]
        seen = f"{what}: can't be read with the target's identity: {problem.message}"
        right = advice("; anneal rbac {} --page prints the rights", self.target.name) if isinstance(error, AccessDenied) else ""
        self.notes.append(f"{seen}{right}")


def _owner(live: Object, space: str, tops: Mapping[str, SeenObject]) -> str:
    """Return the uid of the object that owns another one, of the same namespace; empty: none of `tops` does."""
    for each in items_at(live, "metadata", "ownerReferences"):
        top = tops.get(str(at(each, "uid")))
        if top and (top.identity.namespace, top.identity.kind) == (space, at(each, "kind")) and identity_of(live).namespace == space:
            return top.uid
    return ""
