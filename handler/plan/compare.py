"""Live objects, as their pages arrive, against the desired set. Nothing live is kept but what a decision still needs.

Same: noted and dropped. Undecided: kept for the server's dry-run. Ours but not declared: a prune candidate. A hook: noted, never compared.
What is only created where it's missing is the same as long as it lives. Ours and left alone by an annotation: kept, never compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from handler.model.field_masking import MASKED, shown
from handler.model.hidden_fields import HiddenFields
from handler.model.names import GroupKind, Identity, Resource, identity_of, uid_and_version
from handler.model.plan import FieldChange
from handler.model.rollout import APPLIED, Mode
from handler.plan import steering
from handler.plan.admission import Desired
from handler.plan.adoption import Adoptions
from handler.plan.dependants import Dependant, dependant_of, owners_of
from handler.plan.diff import tellable, text_of
from handler.plan.gap import FieldGaps
from handler.plan.hooks import is_made
from handler.plan.ignore import Ignoring
from handler.plan.inventory import Membership, is_member
from handler.plan.managed_fields import at_path, is_ours_alone, is_same
from handler.plan.retention import reduced
from handler.plan.takeover import Takeover, takeover, undeclared

SECRET = GroupKind("", "Secret")
_OWNED = b'"ownerReferences"'
Seen = tuple[str, str]  # (uid, resourceVersion)


def fingerprint(item: Desired) -> bytes:
    """Return what a cached verdict remembers of a desired object."""
    return hashlib.blake2b(item.manifest.raw, digest_size=16).digest()


@dataclass(slots=True)
class Comparison:
    """The state of one comparison; `see` every labelled object, then `probe` what of the rest exists unlabelled.

    `gaps`: takes the fields of each declared live object, `adoptions`: what isn't ours yet; None: they aren't asked for. `dependants`: what
    has owners, ours or not; `keeps`: returns why such a one may not go with them. `whole`: of which members that are the same `bodies` are
    kept.
    """

    ours: Membership
    desired: dict[Identity, Desired]
    ignoring: Ignoring
    known_same: Mapping[Seen, bytes] = field(default_factory=dict)
    same: dict[Identity, Seen] = field(default_factory=dict)
    undecided: dict[Identity, dict[str, Any]] = field(default_factory=dict)
    unowned: dict[Identity, dict[str, Any]] = field(default_factory=dict)
    candidates: dict[Identity, dict[str, Any]] = field(default_factory=dict)
    hooks: dict[Identity, dict[str, Any]] = field(default_factory=dict)
    undeclared: dict[Identity, tuple[FieldChange, ...]] | None = None
    adopts: tuple[str, ...] = ()
    left: dict[Identity, dict[str, Any]] = field(default_factory=dict)
    notes: dict[Identity, str] = field(default_factory=dict)
    gaps: FieldGaps | None = None
    adoptions: Adoptions | None = None
    dependants: dict[Identity, Dependant] = field(default_factory=dict)
    keeps: Callable[[Mapping[str, Any]], str] = lambda _: ""
    whole: Collection[Identity] = ()
    bodies: dict[Identity, dict[str, Any]] = field(default_factory=dict, repr=False)

    @property
    def owners(self) -> dict[Identity, tuple[str, ...]]:
        """The uids of what owns members, and what git declares."""
        return {one: each.owners for one, each in self.dependants.items() if each.is_member or one in self.desired}

    @property
    def living(self) -> tuple[Identity, ...]:
        """The live objects that are ours, but for what rollouts made as hooks, which comes and goes."""
        hooks = (one for one, live in self.hooks.items() if is_member(live, one, self.ours) and not is_made(live))
        return (*self.same, *self.undecided, *self.candidates, *self.left, *hooks)

    @property
    def members(self) -> int:
        """How many those are."""
        return len(self.living)

    @property
    def declared_uids(self) -> frozenset[str]:
        """The uids of what lives of what git declares: an object that is served as two kinds has one."""
        lives = (*self.undecided.values(), *self.unowned.values(), *self.hooks.values(), *self.left.values())
        return frozenset((*(uid for uid, _ in self.same.values()), *(str(live["metadata"]["uid"]) for live in lives)))

    def see(self, objects: Iterable[dict[str, Any]], listed: Iterable[Resource] = ()) -> None:
        """Sort objects that carry our label; of one that comes twice the later state counts.

        `listed`: where they come from: of a kind that git writes in several API versions, a declared object is judged in its own.
        """
        versions: dict[GroupKind, set[str]] = {}
        for resource in listed:
            versions.setdefault(resource.group_kind, set()).add(resource.api_version)
        several = {kind: found for kind, found in versions.items() if len(found) > 1}
        for live in objects:
            identity = identity_of(live)
            item = self.desired.get(identity)
            own = item.resource.api_version if item and several else ""
            if not own or own == live["apiVersion"] or own not in several.get(identity.group_kind, ()):
                self._see(identity, item, live)

    def probe(self, objects: Iterable[dict[str, Any]]) -> None:
        """Note declared objects that exist without being ours."""
        for live in objects:
            identity = identity_of(live)
            self.unowned[identity] = live
            self._note_dependant(identity, self.desired.get(identity), live, ours=False)

    def _see(self, identity: Identity, item: Desired | None, live: dict[str, Any]) -> None:
        ours, former = is_member(live, identity, self.ours), self.ours.is_former(live, identity)  # former marks differ from declared ones
        for sorted_before in (self.same, self.undecided, self.unowned, self.candidates, self.hooks, self.left, self.notes, self.dependants):
            sorted_before.pop(identity, None)
        self.bodies.pop(identity, None)
        self._note_dependant(identity, item, live, ours=ours)
        steered = item is not None and steering.is_steered(live)
        odd = steering.note(live) if steered else ""
        if odd:
            self.notes[identity] = f"{identity}: {odd}"
        if item is not None and item.mode is Mode.HOOK:
            self.hooks[identity] = _slim(live, owned=True)
        elif item is None and ours:
            self.candidates[identity] = _slim(live)
        elif item is not None and not ours:
            self.unowned[identity] = live
        elif item is not None and not former and (item.reason or (steered and steering.left_alone(live))):
            self.left[identity] = _slim(live, owned=True)
        elif item is not None and not former and item.mode is Mode.KEEP and not _is_going(live):
            self.same[identity] = uid_and_version(live)
        elif item is not None:
            self._compare(item, live)

    def _compare(self, item: Desired, live: dict[str, Any]) -> None:
        seen = uid_and_version(live)
        verdict = self.known_same.get(seen)
        known = bool(verdict) and verdict == fingerprint(item)
        if not _is_going(live) and ((known and self.undeclared is None) or self._is_same(item, live, known=known)):
            self.same[item.identity] = seen
            if item.identity in self.whole:
                self.bodies[item.identity] = live
        else:
            self.undecided[item.identity] = live

    def _is_same(self, item: Desired, live: dict[str, Any], *, known: bool) -> bool:
        body = self.ignoring.effective(item.identity, item.manifest.body(), live)
        if not known and not is_same(body, live):
            return False
        taken = self.taken_over(item.identity, body, live, adopted=False)
        return known or taken is None

    def taken_over(self, identity: Identity, body: dict[str, Any], live: dict[str, Any], *, adopted: bool) -> Takeover | None:
        """Return what others wrote and becomes ours as `body` is applied onto a live object; ignored fields stay theirs."""
        found = takeover(live, body, adopted=adopted, spared=lambda: self.ignoring.spared(identity, body, live), tools=self.adopts)
        taken = found if found and steering.merges_others(live, body) else None
        if self.undeclared is not None:
            hidden = HiddenFields.of(self.desired[identity].manifest) if identity in self.desired else HiddenFields()
            self.undeclared[identity] = tuple(dict.fromkeys(_undeclared(identity, body, live, taken, hidden)))
        if self.gaps is not None and identity in self.desired:
            declared = self.desired[identity].manifest
            self.gaps.see(identity, declared.body(), live, self.ignoring, HiddenFields.of(declared))
        return taken

    def effective(self, item: Desired, live: dict[str, Any]) -> Desired:
        """Return what is applied onto a live object: the declared one without what others may own."""
        body = self.ignoring.effective(item.identity, item.manifest.body(), live)
        return replace(item, manifest=item.manifest.with_body(body))

    def declare(self, desired: dict[Identity, Desired]) -> None:
        """Take what git declares after all; the bodies that are kept say what it makes of their owners."""
        self.desired = desired
        for identity, live in {**self.bodies, **self.undecided}.items():
            self.dependants.pop(identity, None)
            self._note_dependant(identity, desired.get(identity), live, ours=is_member(live, identity, self.ours))

    def _note_dependant(self, identity: Identity, item: Desired | None, live: dict[str, Any], *, ours: bool) -> None:
        if found := dependant_of(live, is_member=ours, owners=_owners(item, live)):
            self.dependants[identity] = replace(found, kept=self.keeps(live) or ("git declares it" if item else ""))

    def absent(self) -> tuple[Desired, ...]:
        """Return the declared objects not seen so far; of a hook that is no news."""
        seen = self.same.keys() | self.undecided.keys() | self.unowned.keys() | self.left.keys()
        return tuple(item for identity, item in self.desired.items() if identity not in seen and item.mode is not Mode.HOOK)


def _undeclared(
    identity: Identity, body: dict[str, Any], live: dict[str, Any], taken: Takeover | None, hidden: HiddenFields
) -> Iterator[FieldChange]:
    for path, manager, version in undeclared(live, body, taken):
        text, value = text_of(tellable(identity.group_kind, tuple(hidden.told(path)))), at_path(live, path)
        if version:
            yield FieldChange(f"{text} ({version})", "", "…", manager)
        elif value is not None:
            yield FieldChange(text, "", MASKED if hidden.hides(path) else shown(identity.group_kind, text, value), manager)


def _owners(item: Desired | None, live: dict[str, Any]) -> tuple[str, ...] | None:
    """Return the uids of what owns an object once it is applied: not those that ours alone wrote, and git has dropped; None: it isn't."""
    if item is None or (_OWNED not in item.manifest.raw and not live["metadata"].get("ownerReferences")):
        return None
    if item.mode not in APPLIED or item.reason or steering.left_alone(live):
        return None
    wanted, there = owners_of(item.manifest.body()) if _OWNED in item.manifest.raw else (), owners_of(live)
    ours = {uid for uid in there if is_ours_alone(live, ("metadata", "ownerReferences", (("uid", uid),)))}
    return tuple(dict.fromkeys((*(uid for uid in there if uid not in ours), *wanted)))


def _is_going(live: dict[str, Any]) -> bool:
    return bool(live["metadata"].get("deletionTimestamp"))


def _slim(live: dict[str, Any], *, owned: bool = False) -> dict[str, Any]:
    metadata = {key: value for key, value in live["metadata"].items() if owned or key != "managedFields"}
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata, **reduced(live)}
