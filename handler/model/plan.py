"""The Plan: a value that can be printed, hashed, compared and approved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from handler.model.manifest import Manifest, canonical
from handler.model.names import Identity
from handler.model.numbers import many
from handler.model.render import FILES


class Action(StrEnum):
    """What a run does to one object."""

    CREATE = "create"
    UPDATE = "update"
    RECREATE = "recreate"
    UNCHANGED = "unchanged"
    PRUNE = "prune"
    SKIP = "skip"


DONE = {
    Action.CREATE: "created",
    Action.UPDATE: "configured",
    Action.RECREATE: "recreated",
    Action.UNCHANGED: "unchanged",
    Action.PRUNE: "pruned",
    Action.SKIP: "skipped",
}
"""The past participle of each action, as kubectl and Flux print it."""
PENDING = "deleting"  # the word for what a run has asked to go and what isn't gone yet


class Cause(StrEnum):
    """Why a live object will be gone because of a run."""

    UNDECLARED = "undeclared"
    ANEW = "anew"
    FINISHED = "finished"
    STEP = "step"
    HOOK = "hook"
    REPEATED = "repeated"
    OWNER = "owner"
    CONTENT = "content"
    VOLUME = "volume"
    WRITTEN = "written"
    STUCK = "stuck"


SAID = {
    Cause.UNDECLARED: "git declares it no longer",
    Cause.ANEW: "it is made anew",
    Cause.FINISHED: "the finished one makes way for its successor",
    Cause.STEP: "a step deletes it",
    Cause.HOOK: "a hook takes its place, or deletes it",
    Cause.REPEATED: "a rollout made it as this hook",
    Cause.OWNER: "its owner goes",
    Cause.CONTENT: "what holds it goes",
    Cause.VOLUME: "a retention policy deletes it",
    Cause.WRITTEN: "it is deleted once it is written so",
    Cause.STUCK: "it isn't ready, and its controller doesn't replace it once it is to be of another revision",
}
"""Each cause for people."""
OF_ITS_OWN = frozenset({Cause.FINISHED, Cause.REPEATED})
"""Causes by which an object makes way for its own successor: named, not counted."""


@dataclass(frozen=True, slots=True)
class Gone:
    """One live object that will be gone because of a run, by us or by Kubernetes. `by`: whose change takes it along; None: its own.

    `counted`: by guards, and refused where prune is off; not what a controller makes again, nor what a hook or a finished Job replaces of
    its own. `is_member`: else guards count it beside the live members. `returns`: the same run makes it anew.
    """

    identity: Identity
    uid: str
    cause: Cause
    by: Identity | None = None
    counted: bool = True
    is_member: bool = False
    returns: bool = False

    def key(self) -> tuple[str, str, str]:
        """What an approval names: that it goes, its identity, its uid."""
        group = f"{self.identity.group}/" if self.identity.group else ""
        return ("lose", f"{group}{self.identity}", self.uid)

    @property
    def why(self) -> str:
        """Why it goes, for people: `a retention policy deletes it (StatefulSet/shop/db)`."""
        return f"{SAID[self.cause]} ({self.by})" if self.by else SAID[self.cause]

    def __str__(self) -> str:
        """`PersistentVolumeClaim/shop/data-db-0 goes, too: a retention policy deletes it (StatefulSet/shop/db)`."""
        return f"{self.identity} goes{', too' if self.by else ''}: {self.why}"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs. `declared`/`live` are masked text, empty: it isn't there; `manager`: the one that owns it live."""

    path: str
    declared: str
    live: str
    manager: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One object's part of a plan.

    `uid`, `resource_version`: the live ones, the preconditions of the write (empty for a create).
    `managed_fields`: the entries to write first, what others wrote merged into ours (canonical JSON), else empty.
    `undeclared`: what git doesn't declare and stays, with its manager; known only to a plan that is shown.
    `reason`: for a skip or a prune what was seen. `sibling`: the target that an object is left to, or taken over from.
    `marks_only`: an update of our label and annotation, which are all that `manifest` holds.
    `terminating`: since when it is being deleted already; empty: it isn't.
    `unmarked`: it lives in an exclusive namespace, undeclared and without our marks: no member; `until`: when it may be deleted, empty: it
    isn't, or no run has said so yet; `expires`: nothing but its grace keeps it.
    `cause`: why its object is deleted; None: as the action says. `takes`: what Kubernetes deletes because of this change.
    `of_step`: it is left to the step that made it; `unread`: it is kept because what would go with it can't be read.
    """

    action: Action
    identity: Identity
    uid: str = ""
    resource_version: str = ""
    reason: str = ""
    fields: tuple[FieldChange, ...] = ()
    manifest: Manifest | None = None
    managed_fields: bytes = b""
    deferred: bool = False
    adopted: bool = False
    finalizers: tuple[str, ...] = ()
    undeclared: tuple[FieldChange, ...] = ()
    sibling: str = ""
    marks_only: bool = False
    terminating: str = ""
    unmarked: bool = False
    until: str = ""
    expires: bool = False
    of_step: bool = False
    cause: Cause | None = None
    takes: tuple[Gone, ...] = ()
    unread: bool = False

    @property
    def is_left(self) -> bool:
        """Whether it is left to a sibling, which declares it or may: no orphan, and no member by which guards count."""
        return self.action is Action.SKIP and bool(self.sibling)

    @property
    def lives(self) -> bool:
        """Whether git declares it and it is there before the run."""
        return self.action in (Action.UNCHANGED, Action.UPDATE, Action.RECREATE)

    @property
    def writes(self) -> bool:
        """Whether the cluster is touched."""
        return self.action in (Action.CREATE, Action.UPDATE, Action.RECREATE, Action.PRUNE)

    @property
    def withheld(self) -> bool:
        """Whether git declares an object that isn't written: live may differ from git."""
        return self.action is Action.SKIP and self.manifest is not None

    @property
    def removes(self) -> bool:
        """Whether its live object goes away."""
        return self.action in (Action.RECREATE, Action.PRUNE)

    @property
    def done(self) -> str:
        """The word for what a run did; what was deleted and is still `terminating` waits for its finalizers."""
        return PENDING if self.action is Action.PRUNE and self.terminating else DONE[self.action]

    @property
    def gone(self) -> tuple[Gone, ...]:
        """All that goes because of this change: its own object, and what Kubernetes deletes with it."""
        if not self.writes:
            return ()
        anew = self.action is Action.RECREATE
        cause = self.cause or (Cause.ANEW if anew else Cause.UNDECLARED)
        own = Gone(self.identity, self.uid, cause, counted=cause not in OF_ITS_OWN, is_member=not self.unmarked, returns=anew)
        return ((own,) if self.removes else ()) + self.takes

    @property
    def drops(self) -> tuple[FieldChange, ...]:
        """The fields that go of an object that stays."""
        return tuple(field for field in self.fields if not field.declared) if self.action is Action.UPDATE else ()

    def key(self) -> tuple[str, str, str]:
        """What an approval names: action, identity with what goes of it, uid."""
        group = f"{self.identity.group}/" if self.identity.group else ""
        digest = hashlib.sha256(canonical(sorted([field.path, field.live] for field in self.drops))).hexdigest()[:12]
        gone = f" without {many(len(self.drops), 'field')} ({digest})" if self.drops else ""
        return (str(self.action), f"{group}{self.identity}{gone}", self.uid)


LOST = "lost"
"""The word for what goes with others, or by a hook, beside what is pruned and recreated."""


def tally(changes: Iterable[Change], *, done: bool = True, also: Iterable[Gone] = ()) -> dict[str, int]:
    """Count changes by what was done to their objects, or is to be done; last what goes with them, and `also`."""
    found: dict[str, int] = {}
    lost = sum(each.counted for each in also)
    for change in changes:
        word = change.done if done or not change.writes else f"to {change.action}"
        found[word] = found.get(word, 0) + 1
        lost += sum(each.counted for each in change.takes) if change.writes else 0
    return found | ({LOST if done else "to lose": lost} if lost else {})


@dataclass(frozen=True, slots=True)
class Hold:
    """A plan that waits for a person. `reasons` carry the numbers; `changes` are the guarded keys."""

    id: str
    reasons: tuple[str, ...]
    changes: tuple[tuple[str, str, str], ...]


def within(changes: Iterable[Change], shown: Iterable[Change]) -> tuple[Change, ...]:
    """Return the changes that end no more than what those that were shown end; what a controller makes again doesn't matter."""
    named = {gone.uid for change in shown for gone in change.gone}
    return tuple(change for change in changes if {gone.uid for gone in change.gone if gone.counted} <= named)


@dataclass(frozen=True, slots=True)
class Due:
    """A step or hook that a run would carry out. `group`: the Rollout's, or the phase; `mark`: what an action under way has remembered.

    `gone`: what a hook deletes of what lives under its name.
    """

    group: str
    step: str
    identity: Identity
    action: str
    mark: str = ""
    gone: tuple[Gone, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one run would do. `stages` are applied in order, `prunes` afterwards in theirs; `due`: see `Due`.

    `renderer`: which one made what git declares. `relabelled`: members with the marks of a former name that git doesn't declare, or that
    are hooks: their marks are written before anything else, whatever becomes of them. `stuck`: pods that a wait deletes.
    """

    target: str
    commit: str
    stages: tuple[tuple[Change, ...], ...]
    prunes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    hold: Hold | None = None
    live_members: int = 0
    outside: tuple[Identity, ...] = field(default=())
    due: tuple[Due, ...] = ()
    renderer: str = FILES
    relabelled: tuple[Change, ...] = ()
    stuck: tuple[Gone, ...] = ()

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every change, applies first."""
        return tuple(change for stage in self.stages for change in stage) + self.relabelled + self.prunes

    @property
    def gone(self) -> tuple[Gone, ...]:
        """Every live object that will be gone because of the run, once, whatever takes it."""
        found = [gone for change in self.changes for gone in change.gone] + [gone for due in self.due for gone in due.gone]
        found += self.stuck
        return tuple({gone.uid or str(gone.identity): gone for gone in reversed(found)}.values())[::-1]

    @property
    def lost(self) -> tuple[Gone, ...]:
        """What counts of it beside what is pruned and recreated: what goes with others, or by a hook."""
        own = {change.identity for change in self.changes if change.removes}
        return tuple(each for each in self.gone if each.counted and each.identity not in own)

    @property
    def writes(self) -> tuple[Change, ...]:
        """The changes that touch the cluster."""
        return tuple(change for change in self.changes if change.writes)

    @property
    def withheld(self) -> tuple[Change, ...]:
        """The declared objects that aren't written."""
        return tuple(change for change in self.changes if change.withheld)

    @property
    def verdict(self) -> str:
        """Say of a plan without writes that live equals git, and how many objects that isn't known of."""
        kept = len(self.withheld)
        return f"live equals git{f', but for {kept} left alone' if kept else ''}"

    @property
    def removed(self) -> int:
        """How many fields of objects that stay go."""
        return sum(len(change.drops) for change in self.changes)

    @property
    def works(self) -> bool:
        """Whether there is anything to do: an object to write, a step or a hook to carry out."""
        return bool(self.writes or self.due)

    def counts(self, *, done: bool = True) -> dict[str, int]:
        """How many objects each action meets, zeros left out: `pruned`, or `to prune` while nothing is done."""
        return tally(self.changes, done=done, also=() if done else (gone for due in self.due for gone in due.gone))

    def with_outcomes(self, outcomes: Iterable[Change]) -> Plan:
        """Return the plan as it came out: what a second look decided stands in the place of what was planned."""
        found = {change.identity: change for change in outcomes}
        stages = tuple(tuple(found.get(change.identity, change) for change in stage) for stage in self.stages)
        return replace(self, stages=stages, prunes=tuple(found.get(change.identity, change) for change in self.prunes))

    def digest(self) -> str:
        """Return the sha256 of what would be written and deleted: the same plan has the same digest."""
        rows = [[*change.key(), change.manifest.raw.decode() if change.manifest else ""] for change in self.writes]
        return hashlib.sha256(canonical(sorted(rows))).hexdigest()
