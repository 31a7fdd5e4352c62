"""The siblings of one run: targets of the same repository, revision, cluster and installation, asked what they declare.

Law: lazy: each sibling is read and rendered once a plan, and only for what would be deleted or is taken; right before a write its record is
looked at again. It is rendered through a copy of its own Preparer: its runs in other threads keep their cache. No answer is a reason to
hold.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from handler.config.settings import Target
from handler.engine.planner.desired import Preparer
from handler.engine.planner.exclusive_needs import named_in_git
from handler.model.advice import advice
from handler.model.errors import AnnealError, ClusterUnavailable, Moved, PathMissing, PlanRefused, Problem, TransientError
from handler.model.instance import template_of
from handler.model.names import PART_OF, Identity
from handler.model.plan import Change
from handler.model.quotation import quoted
from handler.model.render import RecordedRender
from handler.model.rollout import Mode
from handler.plan.admission import Desired
from handler.plan.handover import (
    Declared,
    FoundRecord,
    StandingCommit,
    kept_for,
    left_off_head,
    may_declare,
    named_for,
    refused,
    refused_to_namesake,
    refused_to_strangers,
)
from handler.plan.inventory import TargetMarks, marked_target
from handler.plan.judge import also_owned
from handler.plan.ownership import foreign_owner, set_of
from handler.state.record import Ran, State
from handler.state.suspension import CONFIGURED, suspension


@dataclass(frozen=True, slots=True)
class SiblingRecord:
    """A sibling's record, with what it takes over. `state`: None: there is none; `version`: its resourceVersion, `?`: two records count.

    `former`: the marks that its members carry still, until it has taken them over.
    """

    state: State | None
    version: str = ""
    former: TargetMarks | None = None


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another target that may own what this one declares.

    `marks`: what its members carry; `formers`: what they may carry from before a rename or a move of its record; `preparer`: its own, whose
    cache stays as it is; `record`: reads its record. Both may raise AnnealError. `uncertain`: its cluster can't be asked which one it is,
    and its record isn't here; what git declares for it is all that is known. `apart`: it follows others than this target, or none, and so
    is on other commits: what counts is what it has or is being brought to.
    """

    target: Target
    marks: TargetMarks
    formers: Collection[TargetMarks]
    preparer: Callable[[], Preparer]
    record: Callable[[], SiblingRecord]
    uncertain: bool = False
    apart: bool = False


class Siblings(Protocol):
    """What one target's runs know of the others."""

    def all(self) -> Sequence[Sibling]:
        """Return the siblings. Raises AnnealError."""

    def versions(self) -> Mapping[str, str]:
        """Return the resourceVersion of every target's record on this cluster, by target, in one request. Raises AnnealError."""

    def knows(self, name: str) -> bool:
        """Whether a target of this name is configured."""

    def record_of(self, applyset: str) -> FoundRecord | None:
        """Return the record that is the parent of an ApplySet; None: none is seen. Raises AnnealError."""


class NoSiblings:
    """A target without siblings."""

    def all(self) -> Sequence[Sibling]:
        """There are none."""
        return ()

    def versions(self) -> Mapping[str, str]:
        """There are none."""
        return {}

    def knows(self, _: str) -> bool:
        """Know of no sibling."""
        return False

    def record_of(self, _: str) -> FoundRecord | None:
        """Know of no record."""
        return None


@dataclass(slots=True)
class _Look:
    """One sibling as this plan has seen it. `state`: its record, None: it has none; `standing`: where it should be."""

    sibling: Sibling
    version: str
    state: State | None
    standing: StandingCommit
    preparer: Preparer
    declared: dict[str, Declared] = field(default_factory=dict)


@dataclass(slots=True)
class SiblingQuestions:
    """What one plan asks of the siblings; threads share it. `resolve`: names the head now; `known`: uids of orphans without a sibling."""

    target: Target
    siblings: Siblings = field(default_factory=NoSiblings)
    revision: str = ""
    head: str = ""
    resolve: Callable[[], str] = str
    known: Collection[str] = frozenset()
    clock: Callable[[], float] = float
    _others: Sequence[Sibling] | None = None
    _records: dict[str, SiblingRecord] = field(default_factory=dict)
    _looks: dict[str, _Look] = field(default_factory=dict)
    _parents: dict[str, FoundRecord | None] = field(default_factory=dict)
    _strangers: set[str] = field(default_factory=set)
    _late: bool = False
    _reads: int = 0
    _versions: Mapping[str, str] | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @property
    def seen(self) -> tuple[tuple[str, str], ...]:
        """The siblings whose records this plan has read, each with the resourceVersion that was read."""
        with self._lock:
            return tuple((name, record.version) for name, record in sorted(self._records.items()))

    @property
    def strangers(self) -> tuple[str, ...]:
        """The targets to which this plan has left objects because they are no siblings: they may become some."""
        with self._lock:
            return tuple(sorted(self._strangers))

    # --- the giver
    def claims(self, identities: Collection[Identity]) -> dict[Identity, tuple[str, str]]:
        """Return which of some objects are left to siblings: to which, and why. Raises AnnealError: the siblings can't be read."""
        with self._lock:
            found = {identity: kept_for(identity, self._declared(identity)) for identity in identities}
        return {identity: claim for identity, claim in found.items() if claim[0]}

    def users(self, identities: Collection[Identity]) -> dict[Identity, str]:
        """Return which of some undeclared objects siblings need, applied or not: what names them. Raises AnnealError: see `claims`."""
        with self._lock:
            found = {identity: named_for(identity, self._declared(identity)) for identity in identities}
        return {identity: user for identity, user in found.items() if user}

    def _declared(self, identity: Identity) -> Iterator[Declared]:
        """Yield what each sibling whose whitelists allow an object declares, commit by commit; each is rendered as it is asked for."""
        for sibling in self._concerned(identity):
            look = self._look(sibling)
            yield from self._said(look) if isinstance(look, _Look) else [look]

    def _said(self, look: _Look) -> Iterator[Declared]:
        """Yield what a sibling declares at each commit it should be on, then at those of its record, which its runs may still apply."""
        should = dict.fromkeys((look.standing.commit, self.head, self.revision))
        yield from (self._at(look, replace(look.standing, commit=commit)) for commit in should)
        for commit in sorted(_commits(look.state) - should.keys()):
            late = StandingCommit(commit, f"was last brought to {commit[:12]}", advice("`anneal apply {}`", look.sibling.target.name))
            yield self._at(look, replace(look.standing, commit=commit) if look.standing.why else late, recorded=True)

    def doubt(self, identity: Identity) -> tuple[str, str]:
        """Return the sibling whose record says something else than when this was planned, and a reason to delete nothing; empty: none."""
        concerned = self._concerned(identity)
        if not concerned:
            return "", ""
        versions = self._versions_now()
        with self._lock:
            moved = next((each.target.name for each in concerned if self._has_moved(each, versions)), "")
        return moved, f"target {moved} has moved on since this was planned; looked at again soon" if moved else ""

    # --- the taker
    def giver(self, item: Desired, live: dict[str, Any], applyset: str, *, kept: bool = False) -> str | Problem | Change:
        """Return the sibling that gives up a live object which isn't ours; empty: it is no target's.

        `applyset`: ours; `kept`: it is left as it lives, also where it belongs to a target that is no sibling. A Problem: it isn't given
        up; a Change: this target is off the head, and leaves it. Raises TransientError: it can't be known now, or the head has moved.
        """
        labelled = (live["metadata"].get("labels") or {}).get(PART_OF)
        name = marked_target(live, item.identity)
        if not name or labelled in (None, applyset):
            return ""
        with self._lock:
            owner = self._owner(TargetMarks(name, labelled))
            if owner is None:
                return "" if kept or labelled in self.target.adopts else self._refused(item, live, name, applyset)
            if owner.uncertain:
                seen = f"belongs to target {name}, which reaches its cluster another way, and can't now"
                raise ClusterUnavailable.of(str(item.identity), seen, fix="anneal check")
            self._refuse_if_late(item.identity)
            look = self._look(owner)
            found = self._at(look, look.standing) if isinstance(look, _Look) else look
        if isinstance(found.failure, TransientError):
            raise found.failure
        left = left_off_head(item, live, found, self.revision) if self.revision != self.head else None
        return left or refused(item, found) or owner.target.name

    def _owner(self, marks: TargetMarks) -> Sibling | None:
        """Return the sibling whose marks these are, or were, while it takes over what carries them."""
        own = next((each for each in self._all() if each.marks == marks), None)
        return own or next((each for each in self._all() if marks in each.formers and self._takes_over(each, marks)), None)

    def _takes_over(self, sibling: Sibling, marks: TargetMarks) -> bool:
        try:
            return not sibling.uncertain and self._record(sibling).former == marks
        except TransientError:
            raise
        except AnnealError:  # its record, or that one, belongs elsewhere
            return False

    def _refused(self, item: Desired, live: dict[str, Any], name: str, applyset: str) -> Problem:
        """Refuse what belongs to a target that is no sibling; `adopt` may name its ApplySet instead, and what else has it."""
        taker, found = self.target, set_of(live)
        self._strangers |= {name} - {taker.name, *(each.target.name for each in self._all())}
        record = self._parent(found) if found else None
        known = name != taker.name and self.siblings.knows(template_of(name)) and not (record and record.installation)
        is_own = record is not None and record.ours and name == taker.name
        if record is None and name == taker.name:
            problem = refused_to_namesake(item, name)
        else:
            problem = refused_to_strangers(item, name, taker.name, record, known=known)
        if found is None or is_own:
            return problem
        other = foreign_owner(live, item.identity, applyset, (*taker.adopts, found), taker.name, taker.instance)
        return also_owned(problem, taker, found, other)

    def refuse_if_moved(self, identity: Identity, name: str) -> None:
        """Before an object is taken: raise Moved if its giver's record says something else than when this was planned."""
        versions = self._versions_now()
        with self._lock:
            if any(self._has_moved(each, versions) for each in self._all() if each.target.name == name):
                raise Moved.of(str(identity), f"target {name}, which gives it up, has moved on since this was planned")

    def again(self) -> SiblingQuestions:
        """Return one by which objects are judged again in the middle of a run: what siblings say is asked anew, and so is the head."""
        return SiblingQuestions(self.target, self.siblings, self.revision, self.head, self.resolve, self.known, self.clock, _late=True)

    def _refuse_if_late(self, identity: Identity) -> None:
        """A run that has met its object in a sibling's hands since it was planned may be the one that is late."""
        if self._late and self.resolve() != self.head:
            raise Moved.of(str(identity), f"the head has moved on from {self.head[:12]}, and a sibling has taken it over meanwhile")

    # --- Jobs that remove themselves
    def concerns(self, identity: Identity) -> bool:
        """Whether the whitelists of any sibling allow an object. Raises AnnealError: the siblings can't be read."""
        return bool(self._concerned(identity))

    def ran(self, identity: Identity) -> Iterator[tuple[str, tuple[Ran, ...] | AnnealError]]:
        """Yield each sibling that may declare a Job, with its record of Jobs that ran, or why that can't be read. Raises AnnealError."""
        for sibling in self._concerned(identity):
            try:
                with self._lock:
                    state = self._record(sibling).state
            except AnnealError as error:
                yield sibling.target.name, error
            else:
                yield sibling.target.name, tuple(each for each in (state.ran if state else ()) if each.identity == identity)

    # --- what a sibling says
    def _parent(self, applyset: str) -> FoundRecord | None:
        if applyset not in self._parents:
            self._parents[applyset] = self.siblings.record_of(applyset)
        return self._parents[applyset]

    def _concerned(self, identity: Identity) -> list[Sibling]:
        return [sibling for sibling in self._all() if may_declare(sibling.target, identity)]

    def _record(self, sibling: Sibling) -> SiblingRecord:
        name = sibling.target.name
        if name not in self._records:
            self._records[name] = SiblingRecord(None) if sibling.uncertain else sibling.record()
        return self._records[name]

    def _all(self) -> Sequence[Sibling]:
        with self._lock:
            if self._others is None:
                self._others = self.siblings.all()
            return self._others

    def _look(self, sibling: Sibling) -> _Look | Declared:
        """Read a sibling's record once; where it can't be read, or not rendered, return the failure in its stead."""
        name = sibling.target.name
        if name not in self._looks:
            try:
                record, preparer = self._record(sibling), sibling.preparer()
                standing = self._standing(sibling, record.state, preparer)
            except AnnealError as error:
                return Declared(name, StandingCommit(self.head), failure=error)
            self._looks[name] = _Look(sibling, record.version, record.state, standing, preparer)
        return self._looks[name]

    def _standing(self, sibling: Sibling, state: State | None, preparer: Preparer) -> StandingCommit:
        """Return the commit that a sibling should be on: while it is paused what it has, its pin while that holds, else the head."""
        name = sibling.target.name
        if sibling.uncertain:
            return StandingCommit(self.head, "may be on this cluster and can't reach its own", "`anneal check` says why, and its answer")
        suspend = suspension(sibling.target, state, self.clock())
        if state and suspend and state.commit not in ("", self.head):
            by_hand = f"removing `suspend: true` from target {name} in anneal.yaml"
            way_out = by_hand if suspend is CONFIGURED else advice("`anneal resume {}`", name)
            return StandingCommit(state.commit, f"is suspended by {quoted(suspend.by)}", way_out)
        if sibling.apart and state and (on := (state.attempt or state).commit) not in ("", self.head):
            way_out = advice("`anneal promote {}`" if sibling.target.revision.promoted else "`anneal apply {}`", name)
            return StandingCommit(on, f"follows commits of its own and is on {on[:12]}", way_out)
        if state and state.pin and state.pin.commit != self.head and preparer.is_held_by(state.pin, self.head):
            return StandingCommit(state.pin.commit, f"is pinned to {state.pin.commit[:12]}", advice("`anneal unpin {}`", name))
        return StandingCommit(self.head)

    def _at(self, look: _Look, standing: StandingCommit, *, recorded: bool = False) -> Declared:
        """Return what a sibling declares at a commit; rendered once. `recorded`: what its record lists of the applied one will do."""
        commit = standing.commit
        if commit not in look.declared:
            listed = recorded and look.state is not None and look.state.commit == commit
            names = bool(self.target.exclusive)
            look.declared[commit] = _listed(look, standing) if listed else _rendered(look, standing, self.head, names=names)
        return look.declared[commit]

    def _has_moved(self, sibling: Sibling, versions: Mapping[str, str]) -> bool:
        """Whether a sibling's record says something else than when it was looked at: another commit to be on, or to be brought."""
        look, name = self._looks.get(sibling.target.name), sibling.target.name
        if look is None:
            return True
        if versions.get(name, "") == look.version:
            return False
        record = sibling.record()
        standing = self._standing(sibling, record.state, look.preparer)
        if standing != look.standing or _commits(record.state) - _commits(look.state) - {standing.commit}:
            return True
        look.version = record.version
        return False

    def _versions_now(self) -> Mapping[str, str]:
        begun = self._reads  # threads that ask while one reads share the next read: it begins after they asked, as their own would
        with self._lock:
            if self._versions is None or self._reads == begun:
                self._reads, self._versions = self._reads + 1, None
                self._versions = self.siblings.versions()
            return self._versions


def _commits(state: State | None) -> frozenset[str]:
    if state is None:
        return frozenset()
    return frozenset({state.commit, *(each.commit for each in (state.attempt, state.pin) if each)}) - {""}


def _listed(look: _Look, standing: StandingCommit) -> Declared:
    return Declared(look.sibling.target.name, standing, dict.fromkeys(look.state.declared if look.state else (), ""))


def _rendered(look: _Look, standing: StandingCommit, head: str, *, names: bool) -> Declared:
    """Render a sibling; an empty set that its target doesn't allow is a failure of its runs, and so is a commit that isn't proven."""
    target, older, apart = look.sibling.target, standing.commit != head, look.sibling.apart
    try:
        if older or apart:
            look.preparer.prove(standing.commit, "" if apart else head)
        recorded = look.state.render if look.state else RecordedRender()
        prepared = replace(look.preparer).prepare(standing.commit, recorded, older=older)
    except AnnealError as error:
        return Declared(target.name, standing, failure=error, empty=isinstance(error, PathMissing))
    items = [item for stage in prepared.stages for item in stage]
    if not items and not prepared.planned_rollout.doomed and not target.prune.allow_empty:
        fix = advice("set prune: {allowEmpty: true} on target {text} if that is meant, or correct its path and include", target.name)
        failure = PlanRefused.of(f"target {target.name}", "the render declares no object", fix=fix)
        return Declared(target.name, standing, failure=failure, empty=True)
    by_hooks = prepared.planned_hooks.items
    hooks = {identity: item.manifest.place for identity, item in by_hooks.items()}
    places = {item.identity: item.manifest.place for item in items if item.mode is not Mode.HOOK}
    named = named_in_git(item.manifest for item in (*items, *by_hooks.values())) if names else {}
    return Declared(target.name, standing, places, hooks, named)
