"""A target that isn't configured any more ends: what it has is deleted, or let go, and its record goes last. By that record alone.

    look         the members by their marks, each judged by the rules of prune; what those keep, or a target declares, is let go;
                 what can't be judged, because something can't be read, ends nothing: `EndUnsure`, and no write
    Lease        a run of it that lives holds it: busy
    delete       in the order of prune, under uid and resourceVersion, each stage gone before the next; only what was shown
    let go       our marks, and our entry of managedFields, by one patch each
    the record   and its Lease, once a LIST finds no member

Law: killed anywhere, the same again goes on. A record that says that another has taken over, or that it takes over itself, is left alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from handler.cluster.parallel import parallel
from handler.cluster.write import Writer
from handler.engine.apply.mark_writer import written
from handler.engine.apply.prune import Pruner
from handler.engine.planner.join_errors import raise_together
from handler.engine.planner.members import Members, may_be_gone, served
from handler.engine.planner.planner import Planned, Planner, PlanRequest
from handler.engine.run.errors import EndUnsure, RequestRefused
from handler.model.advice import advice
from handler.model.errors import AccessDenied, TargetMoved
from handler.model.names import Identity, Resource, identity_of, kubectl, state_name
from handler.model.plan import Action, Change, within
from handler.plan.inventory import is_member
from handler.plan.letting_go import let_go, patch
from handler.plan.prune import GUARDED
from handler.state.lease import HeldLease, LeaseLock
from handler.state.record import State
from handler.state.record_values import RecordName
from handler.state.store import StateStore, StoredState

_KEEP = "kept"


@dataclass(frozen=True, slots=True)
class Retirement:
    """What becomes of a target's members: `going` are deleted, in their order, `staying` let go."""

    state: State
    planned: Planned
    going: tuple[Change, ...]
    staying: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Retired:
    """What was done; `left`: members that came meanwhile, or can't be judged any more, `ended`: the record is gone."""

    done: tuple[Change, ...]
    left: tuple[Identity, ...]
    ended: bool


@dataclass(slots=True)
class Retire:
    """One target's end. `make`: makes the planner that sees where the record says; `namespace`: only what is there, empty: all of it.

    `has_taken`: whether it has begun to take a record over: until then nothing carries its marks; `claims`: returns which objects
    configured targets declare, each with the reason to keep it, raises EndUnsure; `server`: returns the running server that looks after it;
    `taker`: the target whose record says that it takes this one over; `wrote`: called with what was written; `ends`: raises if the target
    goes on by now, asked of each record that is read.
    """

    name: str
    installation: str
    store: StateStore
    lock: LeaseLock
    make: Callable[[State], Planner]
    cluster_uid: Callable[[], str]
    has_taken: Callable[[RecordName], bool]
    lease_duration: float
    prune: bool
    namespace: str = ""
    claims: Callable[[Collection[Identity]], Mapping[Identity, str]] = lambda _: {}
    server: Callable[[], str] = str
    taker: Callable[[], str] = str
    wrote: Callable[[Sequence[Change]], None] = lambda _: None
    ends: Callable[[State], None] = lambda _: None
    _planner: Planner | None = None
    _done: list[Change] = field(default_factory=list)

    def look(self) -> Retirement:
        """Return what would be done. Raises RequestRefused, TargetMoved: it may not be; AnnealError."""
        return self._planned(self._read())

    def carry_out(self, shown: Retirement, stop: threading.Event) -> Retired:
        """Do what was shown and is still to be done. Raises AnnealError: the same again goes on."""
        lease = self.lock.acquire(wait=self.lease_duration * 1.2, stop=stop)
        try:
            found = self._planned(self._read())
            unread = self._delete(found, shown.going, lease)
            self._let_go(found, {change.uid for change in (*shown.going, *shown.staying)} - unread, lease)
            lost = {gone.uid for change in self._done if change.removes for gone in change.takes}
            left = tuple(identity for identity, live in self._members(found.state) if live["metadata"]["uid"] not in lost)
            if not left:
                self._end(lease)
            return Retired(tuple(self._done), left, ended=not left and not self.namespace)
        finally:
            lease.hand_over()

    # --- the record
    def _read(self) -> StoredState:
        stored = self.store.read()
        state, subject = stored.state, f"target {self.name}"
        if state is None:
            raise RequestRefused.of(subject, "has no record there, so nothing is known of what it has", fix="anneal status")
        if state.installation != self.installation:
            seen = f"belongs to installation {state.installation}, this one is {self.installation}"
            flags = ["--prune" if self.prune else "--keep", "--installation", state.installation]
            way = "anneal retire {}{words} --dry-run shows what it has; to end it, use the configuration of that installation"
            raise RequestRefused.of(subject, seen, fix=advice(way, self.name, flags))
        if state.renamed_to:
            seen = f"target {state.renamed_to.name} has taken over what it had, and deletes this record at its end"
            raise RequestRefused.of(subject, seen, fix=advice("anneal apply {}", state.renamed_to.name))
        if taker := self.taker():
            seen = f"is taken over by target {taker}, whose next run goes on with that"
            fix = advice("anneal apply {}; or, if that isn't configured any more, first: anneal retire {} --keep", taker, taker)
            raise RequestRefused.of(subject, seen, fix=fix)
        if state.former and self.has_taken(state.former):
            seen = f"takes over what {state.former} has, and hasn't ended that"
            raise RequestRefused.of(subject, seen, fix=advice("configure it until `anneal apply {}` has, then retire it", self.name))
        uid = self.cluster_uid()
        if state.cluster_uid != uid:
            seen = f"its record is of another cluster ({state.cluster_uid}, this one is {uid}), as one from a backup is"
            delete = kubectl("delete", Identity("", "ConfigMap", self.store.namespace, state_name(self.name)))
            raise TargetMoved.of(subject, seen, fix=advice("if nothing of it is here: {text}", delete))
        self.ends(state)
        return stored

    def _end(self, lease: HeldLease) -> None:
        """Delete the record and its Lease; of one namespace alone forget only that."""
        if not self.namespace:
            self.store.remove(self.store.read())
            lease.remove()
            return
        namespace = self.namespace

        def without(now: State) -> State:
            orphans = tuple(each for each in now.orphans if each.identity.namespace != namespace)
            declared = tuple(each for each in now.declared if each.namespace != namespace)
            return replace(now, namespaces=now.namespaces - {namespace}, orphans=orphans, declared=declared)

        self.store.update(without)

    # --- what becomes of it
    def _planned(self, stored: StoredState) -> Retirement:
        state = stored.state
        assert state is not None  # noqa: S101 - read before
        ask = PlanRequest("", "", "", (), state.kinds, state.namespaces, prune=self.prune, keep_reason=_KEEP)
        self._planner = self._planner or self.make(state)
        try:
            planned = self._planner.plan(ask)
        except AccessDenied as denied:
            raise may_be_gone(denied) from None
        concerned = [change for change in planned.plan.prunes if self.namespace in ("", change.identity.namespace)]
        going_away = [change for change in concerned if change.action is Action.PRUNE]
        claimed = self.claims([gone.identity for change in going_away for gone in change.gone])
        along = {c.identity: gone.identity for c in going_away for gone in c.takes if gone.identity in claimed}
        claims = {**{owner: f"{one} would go with it: {claimed[one]}" for owner, one in along.items()}, **claimed}
        if unread := next((change for change in concerned if change.unread), None):
            seen = f"whether {unread.identity} may go isn't known: {unread.reason}"
            opened = unread.identity.group_kind in GUARDED  # else it can be made readable only
            fix = f"let that be read{f', or leave {unread.identity.kind} out of --kind, or of `prune.kinds`' if opened else ''}"
            raise EndUnsure.of(f"target {self.name}", seen, fix=fix)
        kept = [replace(c, action=Action.SKIP, reason=claims[c.identity]) if c.identity in claims else c for c in concerned]
        going = tuple(change for change in kept if change.action is Action.PRUNE)
        bodies = planned.bodies
        lost = {gone.uid for change in going for gone in change.takes}
        stay = [each for each in kept if each.action is not Action.PRUNE and each.uid not in lost]
        staying = tuple(let_go(each.identity, bodies[each.identity], each.reason) for each in stay)
        return Retirement(state, planned, going, staying)

    @property
    def planner(self) -> Planner:
        """What has seen the members."""
        assert self._planner is not None  # noqa: S101 - a plan was made before
        return self._planner

    def _note(self, changes: Sequence[Change]) -> None:
        self._done += changes
        self.wrote(changes)

    def _delete(self, found: Retirement, shown: Sequence[Change], lease: HeldLease) -> set[str]:
        """Delete what was shown; return the uids of what is left, because something can't be read by now."""
        agreed, going = {change.uid for change in shown}, within(found.going, shown)
        if more := next((change for change in found.going if change.uid in agreed and change not in going), None):
            seen = f"{more.identity} would take along more than when it was shown, so nothing is deleted"
            raise EndUnsure.of(f"target {self.name}", seen, fix="look at the new plan")
        planned = replace(found.planned, plan=replace(found.planned.plan, prunes=going))
        pruner = Pruner(self.planner, planned, lease.check, lease.check, (), wrote=self._note)
        pruner.prune()
        return {change.uid for change in pruner.outcomes if change.unread}

    def _let_go(self, found: Retirement, agreed: set[str], lease: HeldLease) -> None:
        """Let go of what stays, and of what was to go and is kept by now."""
        live = [each for each in self._members(found.state) if each[1]["metadata"]["uid"] in agreed]
        reasons = {change.identity: change for change in found.staying}
        changes = [reasons.get(identity) or let_go(identity, body, "it changed meanwhile") for identity, body in live]
        answers = parallel([partial(_let_go_one, self.planner, lease, c, body) for c, (_, body) in zip(changes, live, strict=True)])
        self._note([answer for answer in answers if isinstance(answer, Change)])
        raise_together(answers, changes)

    def _members(self, state: State) -> list[tuple[Identity, dict[str, Any]]]:
        """LIST what is the target's still."""
        planner = self.planner
        served(planner.discovery, state.kinds)  # what can't be listed may live
        found = Members(planner.api, planner.discovery, planner.target, planner.ours, planner.scopes).listed(state.kinds)
        members = [(identity_of(live), live) for live in found if is_member(live, identity_of(live), planner.ours)]
        return [each for each in members if self.namespace in ("", each[0].namespace)]


def _let_go_one(planner: Planner, lease: HeldLease, change: Change, body: dict[str, Any]) -> Change | None:
    """Let go of one object; None: it isn't ours any more, or is gone."""

    def write(resource: Resource, live: dict[str, Any] | None) -> Change | None:
        operations = patch(live or body, change.identity, planner.ours)
        if operations is None:
            return None
        Writer(planner.api, lease.check).patch(resource, change.identity, operations)
        return change

    return written(planner, lease.check, change.identity, write)
