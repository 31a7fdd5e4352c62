"""Looks at exclusive namespaces for what git doesn't declare, and says of each object whether it goes, and when. Writes nothing.

    drift runs, dry runs    LIST of each kind without the label of an ApplySet, metadata alone  -> orphans, those whose grace is over go
    other runs              nothing is asked: what the record knows stays there

Law: what can't be read is no orphan, and the grace of what the record knows of it begins again. The record's times may have been edited: a
grace begins no earlier than object and record were created, and in a process that lives on no earlier than that saw the object. Only an
object that this plan has seen, under the uid whose grace is over, is deleted, and never one that a sibling declares or names, that a
declared object names, or with which something that holds data would go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.cluster.access_review import whoami
from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.live import Listing, pages
from handler.config.settings import Target
from handler.engine.planner.exclusive_content import ExclusiveContent, read
from handler.engine.planner.exclusive_needs import Needs, Users, named_in_git, users
from handler.engine.planner.siblings import SiblingQuestions
from handler.model.advice import advice
from handler.model.errors import AnnealError
from handler.model.manifest import Manifest
from handler.model.names import PART_OF, GroupKind, Identity, Resource, identity_of, kubectl, uid_and_version
from handler.model.plan import Action, Change
from handler.plan.dependants import Dependant
from handler.plan.exclusive import (
    DATA,
    RIGHTS,
    ROLE_BINDING,
    Sighting,
    is_looked_for,
    left_alone,
    may_own_data,
    own_rights,
    rights_of,
    said,
    taken_apart,
    unread,
    until,
)
from handler.plan.prune import ALLOW, kept_by_itself, left_to
from handler.state.record import Orphan
from handler.state.record_format import seconds_of, stamp

MOST = 2000  # orphans of exclusive namespaces that a record keeps: the grace of more begins once some of these are gone
_BESIDE = 20  # namespaces that aren't exclusive in which undeclared objects are listed

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExclusiveRequest:
    """What a plan asks of exclusive namespaces. `known`: orphans of the record; `now`: by the API server's clock, seconds since the epoch.

    `looks`: whether this run looks; `kept`: why nothing is deleted there, empty: it may be; `records`: the run is no dry run, so that what
    it sees first is known from then on; `beside`: other namespaces, in which undeclared objects are only listed; `own`: namespace/name of
    the workload that this handler runs in; `born`: when the record was created.
    """

    known: tuple[Orphan, ...] = ()
    now: float = 0.0
    looks: bool = False
    kept: str = ""
    records: bool = False
    beside: tuple[str, ...] = ()
    own: str = ""
    born: float = 0.0


@dataclass(frozen=True, slots=True)
class DeclaredObjects:
    """What a plan knows of git's objects. `declared`: all of them, hooks and doomed ones, too; `uids`: of what lives without our marks.

    `owners`: the uids of what owns members.
    """

    declared: Collection[Identity] = ()
    uids: Collection[str] = ()
    manifests: tuple[Manifest, ...] = ()
    owners: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExclusiveFindings:
    """What was found. `changes`: of the plan, with their `bodies`; `orphans`: what the record keeps, but for what this run deletes.

    `beside`: undeclared objects of the other namespaces; `notes`: what is left alone, and what couldn't be read; `dependants`: what has
    owners.
    """

    changes: tuple[Change, ...] = ()
    bodies: Mapping[Identity, Object] = field(default_factory=dict)
    orphans: tuple[Orphan, ...] = ()
    beside: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    dependants: tuple[Dependant, ...] = ()


@dataclass(frozen=True, slots=True)
class ExclusiveLook:
    """Looks for one target, with its own identity.

    `sightings`: when this process saw each orphan first, by uid, in seconds since the epoch; None: it doesn't live long enough to wait for
    the end of a grace.
    """

    target: Target
    api: Api
    discovery: Discovery
    sightings: dict[str, float] | None = None

    def find(self, ask: ExclusiveRequest, git: DeclaredObjects, handover: SiblingQuestions) -> ExclusiveFindings:
        """Return what lives undeclared.

        Raises AnnealError: what the server serves isn't known, or the siblings of something that would go can't be read.
        """
        known = {each.uid: each for each in ask.known if each.unmarked and each.identity.namespace in self.target.exclusive}
        if not ask.looks:
            return ExclusiveFindings(orphans=tuple(_carried(ask, known.values(), git.declared)))
        home = _home(ask.own, git.declared)
        spaces = [name for name in self.target.exclusive if name != home]
        seen = self._seen((*spaces, *ask.beside[:_BESIDE]), git)
        inside = [live for live in seen.orphans.values() if identity_of(live).namespace in spaces]
        known = self._believed(ask, known, inside)
        missing = (each for uid, each in known.items() if uid not in seen.orphans and each.identity not in git.declared)
        unseen = [each for each in missing if seen.lacks(each.identity)]
        room = max(MOST - len(unseen), 0)
        needs, used = self._needs(seen, inside, git)
        judged = [self._judged(ask, live, known, room - number, needs) for number, live in enumerate(_in_order(inside, known, needs))]
        due = {change.uid: change.identity for change in judged if change.writes}
        claims, needed = handover.claims(due.values()), _needed(due, seen, handover)
        bodies = {identity_of(live): live for live in inside}
        changes = list(_behind([_claimed(change, bodies[change.identity], claims, needed) for change in judged], used))
        kept = [*(_again(each, ask, self.target) for each in unseen), *_recorded(changes[:room], known, ask.now)]
        beside = [_beside(live) for live in seen.orphans.values() if identity_of(live).namespace not in spaces]
        notes = [_AT_HOME.format(home)] if home in self.target.exclusive else []
        notes += [_CUT.format(_BESIDE, len(ask.beside))] if len(ask.beside) > _BESIDE else []
        return ExclusiveFindings(tuple(changes), bodies, tuple(kept), tuple(beside), (*notes, *seen.notes()), tuple(seen.dependants))

    def _believed(self, ask: ExclusiveRequest, known: Mapping[str, Orphan], inside: Sequence[Object]) -> dict[str, Orphan]:
        """Return what the record says of orphans, none seen earlier than object, record and this process (`sightings`) allow."""
        lives = {str(live["metadata"]["uid"]): str(live["metadata"].get("creationTimestamp") or "") for live in inside}
        if self.sightings is not None:
            for uid in self.sightings.keys() - lives.keys():
                self.sightings.pop(uid, None)
            for uid in lives:
                self.sightings.setdefault(uid, ask.now)
        found = dict(known)
        for uid in lives.keys() & known.keys():
            own = self.sightings.get(uid, ask.now) if self.sightings is not None else 0.0
            since = max(seconds_of(known[uid].since), ask.born, own, seconds_of(lives[uid]) if lives[uid] else ask.now)
            found[uid] = replace(known[uid], since=stamp(since))
        return found

    def needed_again(self, changes: Iterable[Change]) -> Needs:
        """Return what keeps orphans right before the first of them goes: one LIST of each kind, for all orphans of a namespace."""
        leaving = {each.uid: each.identity for each in changes if each.unmarked}
        seen = ExclusiveContent(self.discovery.stale)
        found = users(self.api, self.discovery.listable() if leaving else (), seen, leaving)
        needs = Needs(owning=seen.owning(), unread=seen.unread(), unasked=found.unasked)
        return replace(needs, used=found.of([uid for uid, each in leaving.items() if not needs.why(each, uid)]))

    def looked_again(self, changes: Iterable[Change]) -> Needs:
        """Return what keeps orphans that own what may not go by now: one LIST of each kind, for all orphans of a namespace."""
        spaces = sorted({each.identity.namespace for each in changes if is_owner(each)})
        wanted = [(kind, space) for kind in (self.discovery.listable() if spaces else ()) if is_looked_for(kind) for space in spaces]
        seen = read(self.api, wanted, self.discovery.stale, selector=_owning)
        return Needs(owning=seen.owning(), unread=seen.unread())

    def judged_again(self, change: Change, live: Object, declared: Collection[Identity], needs: Needs) -> Change:
        """Judge an orphan from what is live right before its deletion. `needs`: see `looked_again`."""
        if mine := self._own(change.identity):
            return replace(change, action=Action.SKIP, reason=left_for(mine))
        noun = "is declared" if change.identity in declared else left_alone(live, change.identity)
        kept = kept_by_itself(live) or noun or _by_operator(live) or needs.by_data(change.identity, change.uid)
        if noun is not None or kept:
            return replace(change, action=Action.SKIP, reason=left_for(kept or "it has an owner"))
        return replace(change, resource_version=uid_and_version(live)[1])

    def _needs(self, seen: ExclusiveContent, inside: Sequence[Object], git: DeclaredObjects) -> tuple[Needs, Users]:
        """Return what keeps orphans that others need, and what names them."""
        if not inside:
            return Needs(), Users(seen)
        named = named_in_git(git.manifests)
        seen.keep_named(named)
        needs = Needs(named, seen.owning(git.owners), seen.unread())
        found = users(self.api, self.discovery.listable(), seen, _leaving(inside, needs))
        needs = replace(needs, owning=seen.owning(git.owners), unread=seen.unread(), unasked=found.unasked)
        return replace(needs, used=found.of(_leaving(inside, needs))), found

    def _judged(self, ask: ExclusiveRequest, live: Object, known: Mapping[str, Orphan], room: int, needs: Needs) -> Change:
        identity, (uid, version) = identity_of(live), uid_and_version(live)
        finalizers = tuple(str(name) for name in live["metadata"].get("finalizers") or ())
        change = Change(Action.SKIP, identity, uid, version, finalizers=finalizers, unmarked=True)
        before = known.get(uid)
        full = f"{MOST} others come first" if before is None and room <= 0 else ""
        kept = _kept(live, needs) or ask.kept or full
        if kept:
            return replace(change, reason=said(identity, f"; kept: {kept}"))
        change = replace(change, expires=True)
        grace = self.target.orphan_grace
        end = stamp(until(_sighting(before) if before else None, grace, ask.now))
        if (before is None or not before.until) and not ask.records:
            return replace(change, reason=said(identity, f"; deleted orphanGrace ({grace:.0f} s) after the next drift run has noted it"))
        if before is not None and seconds_of(end) <= ask.now:
            return replace(change, action=Action.PRUNE, reason=said(identity, f" since {before.since}"), until=end, expires=False)
        return replace(change, reason=said(identity, f"; deleted after {end}"), until=end)

    # --- what lives
    def _seen(self, namespaces: Sequence[str], git: DeclaredObjects) -> ExclusiveContent:
        self.discovery.refresh()
        index = self.discovery.index()
        wanted = [(resource, name) for resource in index.listable() if is_looked_for(resource) for name in namespaces]
        rights = {name: self._rights(index.preferred.get(ROLE_BINDING), name) for name in namespaces if name in self.target.exclusive}
        seen = read(self.api, wanted, self.discovery.stale, git.declared, rights)
        seen.drop_declared(git.uids)
        return seen

    def _rights(self, bindings: Resource | None, namespace: str) -> frozenset[Identity] | None:
        """Return the target's own account and rights in a namespace, and the handler's, that may impersonate it; None: not to be asked."""
        apis = {self.api, self.discovery.api} if self.target.impersonate else {self.api}
        try:
            listed = [live for page in pages(self.api, Listing(bindings, namespace)) for live in page] if bindings else []
            return frozenset().union(*(rights_of(*whoami(each), listed) for each in apis))
        except AnnealError:
            return None

    def _own(self, identity: Identity) -> str | None:
        """Return what an object is left alone as that may be the target's own account or rights by now."""
        is_right = identity.group_kind in RIGHTS
        return own_rights(identity, self._rights(self.discovery.preferred(ROLE_BINDING), identity.namespace)) if is_right else None


_CUT = "undeclared objects are looked for in the first {} of {} namespaces"
_AT_HOME = "namespace {} holds the workload of this very handler, which git doesn't declare: nothing there is an orphan"


def left_for(why: str) -> str:
    """Return the reason of an orphan that the plan would have had go."""
    return f"is left alone: {why}"


def _owning(kind: GroupKind) -> str:
    """Return which objects of a kind say what may not go: all that hold data or own it, else members of an ApplySet."""
    return "" if kind in DATA or may_own_data(kind) else PART_OF


def is_owner(change: Change) -> bool:
    """Whether with the orphan of a change something may go that holds data."""
    return change.unmarked and may_own_data(change.identity.group_kind)


def _kept(live: Object, needs: Needs) -> str:
    """Return what keeps an orphan whatever its grace; empty: nothing."""
    since = live["metadata"].get("deletionTimestamp")
    going = f"is being deleted since {since}" if since else _by_operator(live)
    return kept_by_itself(live) or going or needs.why(identity_of(live), uid_and_version(live)[0])


def _by_operator(live: Object) -> str:
    identity = identity_of(live)
    finalizer = taken_apart(live, identity.group_kind)
    seen = f"its operator takes it apart by finalizer {finalizer}, and what goes with it can't be seen"
    return advice("{text}; if that may go: {text}", seen, kubectl("annotate", identity, f"{ALLOW}=allow")) if finalizer else ""


def _leaving(inside: Iterable[Object], needs: Needs) -> dict[str, Identity]:
    return {str(live["metadata"]["uid"]): identity_of(live) for live in inside if not _kept(live, needs)}


def _home(own: str, declared: Iterable[Identity]) -> str:
    """Return the namespace of the workload that this handler runs in, unless git declares that; empty: it isn't known, or declared."""
    space, _, name = own.partition("/")
    return "" if any((each.namespace, each.name) == (space, name) for each in declared) else space


def beside_exclusive(target: Target) -> tuple[str, ...]:
    """Return the namespaces of a target in which undeclared objects are listed and never touched; none where it may have any namespace."""
    return () if "*" in target.namespaces else tuple(sorted({*target.namespaces} - {*target.exclusive}))


def _sighting(known: Orphan) -> Sighting:
    return Sighting(seconds_of(known.since), seconds_of(known.until) if known.until else None)


def _in_order(found: Iterable[Object], known: Mapping[str, Orphan], needs: Needs) -> list[Object]:
    """Put what may go first, of that what the record knows, then by name, so that the same ones are recorded each time."""
    return sorted(found, key=lambda live: (bool(_kept(live, needs)), live["metadata"].get("uid") not in known, identity_of(live)))


def _needed(due: Mapping[str, Identity], seen: ExclusiveContent, handover: SiblingQuestions) -> dict[Identity, str]:
    """Return which orphans siblings need, by themselves or for what would go with them: what names that. `due`: by uid."""
    below = seen.named_with(due)
    found = handover.users([*due.values(), *below])
    owners = {due[uid]: f"{each} goes with it: {found[each]}" for each in below if each in found for uid in below[each]}
    return owners | found


def _claimed(change: Change, live: Object, claims: Mapping[Identity, tuple[str, str]], needed: Mapping[Identity, str]) -> Change:
    """Return the change of an orphan that siblings declare (`claims`) or name (`needed`)."""
    if change.identity in claims:
        return replace(left_to(live, *claims[change.identity]), unmarked=True)
    if change.identity in needed:
        kept = said(change.identity, f"; kept: {needed[change.identity]}; declare it, too")
        return replace(change, action=Action.SKIP, reason=kept, until="")
    return change


def _behind(changes: Sequence[Change], used: Users) -> Iterator[Change]:
    """Yield the changes; what is due and is named by what doesn't go yet goes no earlier than that does."""
    named = used.of([change.uid for change in changes if change.writes])
    ends = {change.uid: change.until for change in changes if change.expires}
    for change in changes:
        if user := named.get(change.uid):
            end = max((ends.get(uid, "") for uid in used.seen.above([user.uid])), default="")
            text = f"; deleted after {end}, as {user.identity} does" if end else f"; kept: {user.naming(change.uid)}"
            yield replace(change, action=Action.SKIP, reason=said(change.identity, text), until=end, expires=bool(end))
        else:
            yield change


def _recorded(changes: Iterable[Change], known: Mapping[str, Orphan], now: float) -> Iterator[Orphan]:
    """Yield what the record keeps of orphans that were seen."""
    for change in changes:
        since = known[change.uid].since if change.uid in known else stamp(now)
        yield Orphan(change.uid, change.identity, since, change.sibling, unmarked=True, until=change.until)


def _again(known: Orphan, ask: ExclusiveRequest, target: Target) -> Orphan:
    """Return an orphan that couldn't be looked for, its grace begun again."""
    end = None if ask.kept else unread(_sighting(known), target.orphan_grace, ask.now)
    return replace(known, until=stamp(end) if end else "")


def _carried(ask: ExclusiveRequest, known: Iterable[Orphan], declared: Collection[Identity]) -> Iterator[Orphan]:
    """Yield what a run that doesn't look leaves in the record: what git doesn't declare by now; where nothing goes, without its time."""
    for each in known:
        if each.identity not in declared:
            yield replace(each, until="") if ask.kept else each


def _beside(live: Object) -> Change:
    return Change(Action.SKIP, identity_of(live), *uid_and_version(live), "isn't declared; its namespace isn't exclusive", unmarked=True)
