"""Where a target has no record of its own yet, or takes over still: the record that it had under another name, or in another namespace.

    configured    `renamedFrom`, `stateNamespaceFrom`: the first run starts from a copy of that record
    recorded      `State.former`: a takeover that hasn't ended is finished, while the configuration names that record
    neither       a record of this target in another state namespace refuses the run, with the line that takes it over

Law: nothing is written here. Records are testimony: what they say of each other takes nothing over unless the configuration says so, too.
A record of another installation is never a former one of ours, whatever it is called. Reads, settings and approvals aren't copied, so that
the first plan is whole, under all guards. Until the old record says that it was taken over, runs of the old name may go on: what that knows
by then is read again under its Lease. A record that takes another one over itself isn't taken over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from handler.engine.run.errors import TargetRenamed
from handler.model.advice import advice, together
from handler.model.errors import Problem, TargetMoved
from handler.model.names import Identity, kubectl, state_name
from handler.plan.inventory import TargetMarks
from handler.state.lease import HeldLease, LeaseLock
from handler.state.record import State
from handler.state.record_format import stamp
from handler.state.record_values import RecordName
from handler.state.store import StateStore, StoredState


@dataclass(slots=True)
class FormerRecord:
    """The record that a target takes over, as it was read last.

    `lease`: its Lease, while it is held; `refused`: members of which the API server refused the new marks in this run.
    """

    place: RecordName
    store: StateStore
    lock: LeaseLock
    stored: StoredState = StoredState(None)  # noqa: RUF009 - frozen
    lease: HeldLease | None = None
    refused: dict[Identity, Problem] = field(default_factory=dict)

    def is_claimed_by(self, name: str, namespace: str) -> bool:
        """Whether it says that this record has taken over, or is gone: no run of the old name writes any more.

        What another installation's says is of a namesake.
        """
        state = self.stored.state
        if state is None:
            return True
        return self.store.writes(state) and state.renamed_to is not None and state.renamed_to.is_same(name, namespace)

    def is_ours(self, repository: str, cluster_uid: str) -> bool:
        """Whether it is there, and of this repository, cluster and installation, or of no repository yet."""
        state = self.stored.state
        if state is None or not self.store.writes(state):
            return False
        try:
            self.store.at_home(state, repository, cluster_uid)
        except TargetMoved:
            return False
        return True

    @property
    def unused(self) -> bool:
        """Whether nothing is recorded there."""
        return self.stored.state is None or self.stored.state.fresh


class RecordPlaces(Protocol):
    """Where records of one target are, or were.

    `namespace`: of its own; `configured`: where it may have had one before, likeliest first.
    """

    namespace: str
    configured: Sequence[RecordName]

    def at(self, place: RecordName) -> FormerRecord:
        """Return the record at a place, not read yet."""

    def is_target(self, place: RecordName) -> bool:
        """Whether it is that of another target which is configured."""

    def elsewhere(self, state: State) -> Sequence[RecordName]:
        """Return the records of this target in other namespaces that can be listed. `state`: the blank one. Raises AnnealError."""


def former_marks(former: RecordName | None) -> TargetMarks | None:
    """Return the marks of the members of a record."""
    return TargetMarks.of(former.name, former.namespace) if former else None


def refuse_renamed(state: State | None, namespace: str = "") -> None:
    """Raise TargetRenamed: another target has taken over what this record's had. `namespace`: of the record; empty: it isn't known."""
    if state is None or state.renamed_to is None:
        return
    new, old = state.renamed_to, state.target
    edited = advice("; {text}", _forgetting("renamedTo", old, namespace)) if namespace else ""
    if new.name == old:
        seen = f"was moved to the state namespace {new.namespace}: its record is {new}"
        older = advice("write `stateNamespace: {yaml}`; this configuration is an older one{text}", new.namespace, edited)
        raise TargetRenamed.of(f"target {old}", seen, fix=older)
    seen = f"was renamed: target {new.name} has taken over what it had, in {new}"
    moved = advice(" and, unless that is its `stateNamespace`, `stateNamespaceFrom: {yaml}` beside it", new.namespace)
    ended = advice("let {text} end that with its own configuration (`anneal -c THEIR_FILE apply {}`)", new.name, new.name)
    back = advice("to go back {text}, then write `renamedFrom: {yaml}` on target {text}{text}", ended, new.name, old, moved)
    way = advice("call it {text}, for this configuration is an older one; {text}{text}", new.name, back, edited)
    raise TargetRenamed.of(f"target {old}", seen, fix=way)


def joined(
    places: RecordPlaces | None, known: State, repository: str, now: float, *, recorded: bool, before: FormerRecord | None = None
) -> tuple[State, FormerRecord | None]:
    """Return a target's state with what the record has that it takes over, and that record; None: there is none.

    `known`: its own, or a blank one; `recorded`: which of both; `before`: as read earlier in the same run. Raises TargetMoved: that record
    isn't this repository's, installation's or cluster's, or is in a namespace that isn't configured; TargetRenamed: another has it, or it
    has another one.
    """
    if places is None or (known.former is None and not known.fresh):
        return known, None
    former = read_former(places, repository, known.cluster_uid, known.former, before)
    if former is None:
        if not recorded:
            refuse_elsewhere(places, known)
        return known, None
    if known.former and not _is_configured(places, former):
        _refuse_unconfigured(places, known, former)
        known = replace(known, former=None) if former.stored.state is None else _withdrawn(known)
        return joined(places, known, repository, now, recorded=recorded)
    old, place = former.stored.state, known.former or replace(former.place, at=stamp(now))
    if old is None:
        return replace(known, former=place), former
    _refuse_moved(former, old, repository, known)
    if known.former and former.is_claimed_by(known.target, places.namespace):
        return replace(known, former=place), former
    if not former.is_claimed_by(known.target, places.namespace):
        refuse_renamed(old, former.place.namespace)
        _refuse_unfinished(places, former, old, known.target)
    return _copied(known, old, place, now) if known.fresh else _caught_up(known, old, now), former


def ignored(places: RecordPlaces | None, known: State) -> str:
    """Say why a line takes nothing over: the target has deployed by its own record, or that is another's; empty: none is ignored."""
    if places is None or known.former:
        return ""
    read = [_read(places, place) for place in places.configured]
    ours = (each for each in read if not each.unused and each.is_ours(known.repository, known.cluster_uid))
    former = None if known.fresh else next(ours, None)
    return _outlived(places, former.place, known.target) if former else next(_anothers(read, known.target), "")


def _read(places: RecordPlaces, place: RecordName) -> FormerRecord:
    former = places.at(place)
    former.stored = former.store.read()
    return former


def _outlived(places: RecordPlaces, old: RecordName, name: str) -> str:
    """Say of a line that it comes too late."""
    there = ["--state-namespace", old.namespace] if old.namespace != places.namespace else []
    line = advice("`renamedFrom: {yaml}`", old.name) if old.name != name else advice("`stateNamespaceFrom: {yaml}`", old.namespace)
    seen = f"{line} has no effect: this target has deployed under its own record, and what {old} has isn't taken over"
    remove = "remove the line, then " if old.name != name else ""
    lets_go = "{text}; {text}`anneal retire {} --keep{words}` lets go of that, and `anneal apply {}` takes what git declares"
    return advice(lets_go, seen, remove, old.name, there, name)


def _anothers(read: Iterable[FormerRecord], name: str) -> Iterator[str]:
    """Say of `renamedFrom` that the record which it names is another installation's."""
    for each in read:
        state, place = each.stored.state, each.place
        if place.name != name and state is not None and not each.store.writes(state):
            line = advice("`renamedFrom: {yaml}`", place.name)
            seen = f"{line} has no effect: {place} is of installation {state.installation}"
            yield f"{seen}, and isn't taken over; remove the line"


def read_former(
    places: RecordPlaces, repository: str, cluster_uid: str, recorded: RecordName | None = None, before: FormerRecord | None = None
) -> FormerRecord | None:
    """Read the record that is taken over: the recorded place, else the likeliest configured one that isn't another installation's.

    That is the first of which this repository has applied something on this cluster, else the first of which something was applied.
    """
    found = []
    for place in (recorded,) if recorded else places.configured:
        former = before if before and before.place.is_same(place.name, place.namespace) else places.at(place)
        former.stored = former.store.read()
        state = former.stored.state
        if recorded or (not former.unused and former.is_ours(repository, cluster_uid)):
            return former
        if state is None or former.store.writes(state):
            found.append(former)
    return min(found, key=lambda each: (each.stored.state is None, each.unused), default=None)


def _is_configured(places: RecordPlaces, former: FormerRecord) -> bool:
    return any(former.place.is_same(each.name, each.namespace) for each in places.configured)


def _refuse_unconfigured(places: RecordPlaces, known: State, former: FormerRecord) -> None:
    """Refuse to go on with a takeover that the configuration doesn't name (any more), as far as records say that it has begun."""
    old, place, name = former.stored.state, former.place, known.target
    if old is None or not former.is_claimed_by(name, places.namespace):
        return
    lines = [advice("`renamedFrom: {yaml}`", place.name)] if place.name != name else []
    lines += [advice("`stateNamespaceFrom: {yaml}`", place.namespace)] if place.namespace != places.namespace else []
    seen = f"its record says that it takes over {place}, and this configuration doesn't: nothing of that is taken, moved or deleted"
    ends = advice("to end that, write {text} for {text} until `anneal apply {}` has", together(" and ", lines), name, name)
    ways = ("" if places.is_target(place) else ends, _forgetting("former", name, places.namespace))
    raise TargetRenamed.of(f"target {name}", seen, fix=together("; ", ways))


def _forgetting(key: str, target: str, namespace: str) -> str:
    """Say how a key is taken out of a record that people have written into."""
    patch = f'[{{"op": "remove", "path": "/data/{key}.json"}}]'
    record = Identity("", "ConfigMap", namespace, state_name(target))
    return advice("if the record was edited: {text}", kubectl("patch", record, "--type=json", "-p", patch))


def _withdrawn(known: State) -> State:
    """Return a record without what it has copied of another one."""
    return State(
        known.target,
        known.installation,
        known.cluster_uid,
        status=known.status,
        pin=known.pin,
        suspend=known.suspend,
        history=known.history,
    )


def refuse_elsewhere(places: RecordPlaces, known: State) -> None:
    """Raise TargetMoved or TargetRenamed: a target without a record has one elsewhere. `known`: its blank one."""
    for place in places.elsewhere(known) if not places.configured else ():
        if place.name != known.target:
            refuse_renamed(replace(known, renamed_to=place))
        seen = f"has no record in the state namespace {places.namespace}, but has one in {place.namespace}: {place}"
        there, here = place.namespace, places.namespace
        move = advice("write `stateNamespaceFrom: {yaml}` beside `stateNamespace: {yaml}`: the next run takes it over", there, here)
        raise TargetMoved.of(f"target {known.target}", seen, fix=advice("{text}; or write `stateNamespace: {yaml}` again", move, there))


def _refuse_unfinished(places: RecordPlaces, former: FormerRecord, old: State, name: str) -> None:
    """Refuse a record that takes another one over: what carries the marks of that would be lost sight of."""
    if old.former is None:
        return
    before = _read(places, old.former)
    if before.is_claimed_by(old.target, former.place.namespace):
        seen = f"can't take over {former.place}, which hasn't ended its own takeover of {old.former}"
        fix = advice("{text}, let `anneal apply {}` end that, and change it then", _as_before(former, name), old.target)
        raise TargetRenamed.of(f"target {name}", seen, fix=fix)
    lines = [advice("`renamedFrom: {yaml}` on target {text}", old.former.name, name)] if old.former.name != name else []
    lines += [advice("`stateNamespaceFrom: {yaml}`", old.former.namespace)] if old.former.namespace != places.namespace else []
    seen = f"can't take over {former.place}, which was to take over {old.former} and hasn't begun to: all there was is there"
    raise TargetRenamed.of(f"target {name}", seen, fix=advice("write {text} in its place", together(" and ", lines)))


def _as_before(former: FormerRecord, name: str) -> str:
    """Say how a target is configured by its former record once more."""
    place = former.place
    return f"call it {place.name} again" if place.name != name else advice("write `stateNamespace: {yaml}` again", place.namespace)


def _refuse_moved(former: FormerRecord, old: State, repository: str, known: State) -> None:
    """Refuse a record that belongs elsewhere, with a way out for a target that isn't configured by this name."""
    place = former.place
    if not former.store.writes(old):
        seen = f"was to take over {place}, which installation {old.installation} has by now"
        other = place.name != known.target
        gone = "remove `{text}: {yaml}`: then it begins anew, and nothing of that is taken over"
        fix = advice(gone, *(("renamedFrom", place.name) if other else ("stateNamespaceFrom", place.namespace)))
        raise TargetMoved.of(f"Target/{known.target}", seen, fix=fix)
    try:
        former.store.at_home(old, repository, known.cluster_uid)
    except TargetMoved as moved:
        fix = advice("{text}, `anneal retarget {}` accepts that, and change it then", _as_before(former, known.target), old.target)
        raise TargetMoved(*(Problem(f"Target/{known.target}", each.message, each.place, fix) for each in moved.problems)) from None


def _copied(known: State, old: State, place: RecordName, now: float) -> State:
    """Return the first state of a target that takes a record over; an attempt that is open there goes on here."""
    return replace(
        old,
        target=known.target,
        former=place,
        renamed_from=place.name if place.name != known.target else old.renamed_from,
        renamed_to=None,
        reads="",
        settings="",
        held=None,
        approval=None,
        status=replace(old.status, refusal=None),
        pin=known.pin or old.pin,
        suspend=known.suspension(now) or old.suspension(now),
        history=(*known.history, *old.history),
    )


def _caught_up(known: State, old: State, now: float) -> State:
    """Return a state with what runs of the old name may have done since; what persons said here stands, and a pause of either name."""
    return replace(
        known,
        attempt=known.attempt or old.attempt,
        commit=old.commit,
        digest=old.digest,
        renderer=old.renderer,
        installed=old.installed,
        charts=old.charts,
        rollout=old.rollout,
        waiting=old.waiting,
        declared=old.declared,
        ran=old.ran,
        orphans=old.orphans,
        suspend=known.suspension(now) or old.suspension(now) or known.suspend,
        kinds=known.kinds | old.kinds,
        namespaces=known.namespaces | old.namespaces,
    )
