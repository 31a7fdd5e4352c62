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
    `terminating`: since when what git declares is being deleted all the same; empty: it isn't.
    `unmarked`: it lives in an exclusive namespace, undeclared and without our marks: no member; `until`: when it may be deleted, empty: it
    isn't, or no run has said so yet; `expires`: nothing but its grace keeps it.
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

    @property
    def is_left(self) -> bool:
        """Whether it is left to a sibling, which declares it or may: no orphan, and no member by which guards count."""
        return self.action is Action.SKIP and bool(self.sibling)

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
        """Whether a live object goes away: what the guards count."""
        return self.action in (Action.RECREATE, Action.PRUNE)

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


def tally(changes: Iterable[Change], *, done: bool = True) -> dict[str, int]:
    """Count changes by what was done to their objects, or is to be done."""
    found: dict[str, int] = {}
    for change in changes:
        word = DONE[change.action] if done or not change.writes else f"to {change.action}"
        found[word] = found.get(word, 0) + 1
    return found


@dataclass(frozen=True, slots=True)
class Hold:
    """A plan that waits for a person. `reasons` carry the numbers; `changes` are the guarded keys."""

    id: str
    reasons: tuple[str, ...]
    changes: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Due:
    """A step or hook that a run would carry out. `group`: the Rollout's, or the phase; `mark`: what an action under way has remembered."""

    group: str
    step: str
    identity: Identity
    action: str
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one run would do. `stages` are applied in order, `prunes` afterwards in theirs; `due`: see `Due`.

    `renderer`: which one made what git declares. `relabelled`: members with the marks of a former name that git doesn't declare, or that
    are hooks: their marks are written before anything else, whatever becomes of them.
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

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every change, applies first."""
        return tuple(change for stage in self.stages for change in stage) + self.relabelled + self.prunes

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
        return tally(self.changes, done=done)

    def with_outcomes(self, outcomes: Iterable[Change]) -> Plan:
        """Return the plan as it came out: what a second look decided stands in the place of what was planned."""
        found = {change.identity: change for change in outcomes}
        stages = tuple(tuple(found.get(change.identity, change) for change in stage) for stage in self.stages)
        return replace(self, stages=stages, prunes=tuple(found.get(change.identity, change) for change in self.prunes))

    def digest(self) -> str:
        """Return the sha256 of what would be written and of what goes with it: the same plan has the same digest."""
        rows = [[*change.key(), change.manifest.raw.decode() if change.manifest else ""] for change in self.writes]
        return hashlib.sha256(canonical(sorted(rows))).hexdigest()
