"""The server's dry-run of one object -> its Change. What the server calls equal to live is never written.

Recreate is decided by the server's own words about an immutable field, never by a bare 409 or 422: a typo is a 422 too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from handler.config.settings import ApplySetId, Owner, Target
from handler.model.advice import advice
from handler.model.errors import ApiRefused, Problem
from handler.model.hidden_fields import HiddenFields
from handler.model.instance import template_of
from handler.model.manifest import canonical
from handler.model.names import LASTING, GroupKind, uid_and_version
from handler.model.plan import Action, Cause, Change
from handler.model.rollout import Mode
from handler.plan.admission import Desired, listed
from handler.plan.diff import differs, field_changes
from handler.plan.inventory import Membership, is_member
from handler.plan.live_only_fields import forbidden
from handler.plan.managed_fields import recorded_in
from handler.plan.missing_objects import FIELD_ERROR
from handler.plan.missing_settings import UNOWNED, adopting, block, lacking
from handler.plan.ownership import ForeignOwner, foreign_owner, in_order
from handler.plan.prune import kept_by_itself
from handler.plan.quoted_refusal import told_refusal
from handler.plan.retention import STATEFUL_SET, STAY, deletes_claims, is_finished, leaves_pods, lost_by_write
from handler.plan.steering import left_alone, may_recreate
from handler.plan.takeover import Takeover

RECREATE = "anneal.dev/recreate"
"""Annotation `allow` on a manifest: it may be deleted and created again when an immutable field changes."""
_IMMUTABLE = re.compile(
    r"\bimmutable\b|may not (?:be changed|change)\b|updates to .+? are forbidden|cannot change roleRef", re.IGNORECASE | re.DOTALL
)
_ADMISSION = re.compile(r"""admission webhook ["'].*?["'] denied|ValidatingAdmissionPolicy ["'].*?["'] .*?denied request""", re.DOTALL)
"""A policy's or a webhook's words are whatever their author wrote: they never have anything deleted."""
_JOB = GroupKind("batch", "Job")
_KEEP = "write the live value of that field into git, or give the declared one another name"
_OTHER_NAME = "give it another name; or, if all that may create such objects may take over what lives beside them, add to target "
_MOVE = "take that change back in git; what it holds can only be moved by hand, to an object of another name"
_LIFT = "lift what keeps it from the live object, for no apply can while that field differs; or take the change of that field back"
NO_HOOK_TAKES = "a hook takes nothing over from another tool or target: give it another name, or let an apply take the object over first"
"""The way out of hooks that meet what another tool has deployed."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges the undecided objects of one target."""

    target: Target
    ours: Membership

    def absent(self, item: Desired, *, deferred: bool = False) -> Change:
        """Return the change of an object that isn't there."""
        return Change(Action.CREATE, item.identity, manifest=item.manifest, deferred=deferred)

    def present(self, item: Desired, live: dict[str, Any], wanted: dict[str, Any], taken: Takeover | None = None) -> Change:
        """Compare live with what the server says an apply would make of it. `taken`: what of others becomes ours before that apply."""
        uid, version = uid_and_version(live)
        adopted = not is_member(live, item.identity, self.ours)
        recorded = moved(item, live)
        if not (adopted and taken) and not recorded and not differs(live, wanted):
            return Change(Action.UNCHANGED, item.identity, uid, version, manifest=item.manifest)
        changes = field_changes(item.identity.group_kind, live, wanted, HiddenFields.of(item.manifest))
        reason, merged = "adopted" if adopted else recorded, canonical(taken.entries) if taken else b""
        change = Change(Action.UPDATE, item.identity, uid, version, reason, changes, item.manifest, merged, adopted=adopted)
        return replace(change, takes=lost_by_write(live, wanted))

    def refusal_to_adopt(self, item: Desired, live: dict[str, Any]) -> Problem | None:
        """Return why an existing object that isn't ours may not become ours, or None."""
        owner = foreign_owner(live, item.identity, self.ours.own_label(live), self.target.adopts, self.target.name, self.target.instance)
        if owner:
            return self._owned(Problem(str(item.identity), f"belongs to {owner.name}", item.manifest.place), owner)
        if self.target.adopt == "never":
            problem = Problem(str(item.identity), "exists already and isn't ours", item.manifest.place)
            if self.target.instance:
                return replace(problem, fix=f"{_OTHER_NAME}{template_of(self.target.name)}: trigger: {{resource: {{adoptUnowned: true}}}}")
            return lacking(problem, self.target.name, {"adopt": (UNOWNED,)})
        return None

    def refusal_to_use(self, item: Desired, live: dict[str, Any], way_out: str) -> Problem | None:
        """Return why a hook may not act on an existing object that isn't ours, whatever `adopt` names, or None."""
        owner = foreign_owner(live, item.identity, self.ours.own_label(live), own=self.target.name, instance=self.target.instance)
        if owner:
            return Problem(str(item.identity), f"belongs to {owner.name}", item.manifest.place, way_out)
        return self.refusal_to_adopt(item, live)

    def _owned(self, problem: Problem, owner: ForeignOwner) -> Problem:
        if not owner.tools:
            return replace(problem, fix=f"take it out of there first, or out of target {self.target.name}")
        adopt = in_order((*owner.tools, *self.target.adopts))
        return lacking(problem, self.target.name, {"adopt": adopt}, owner.stop, owners=adoptable_once(self.target, owner.tools))

    def refused(self, item: Desired, live: dict[str, Any] | None, error: ApiRefused) -> Change | Problem:
        """Turn the server's refusal into a recreate where that is allowed, else into a problem with a way out."""
        text = "; ".join(problem.message for problem in told_refusal(error, item.manifest).problems)
        if live is None or not is_immutable(error):
            lives, declare = forbidden(item, live or {}, error.causes)
            return Problem(
                str(item.identity),
                f"{text}; the live object has {lives}" if lives else text,
                item.manifest.place,
                declare or error.problems[0].fix,
            )
        if not is_member(live, item.identity, self.ours):
            fix = _KEEP if item.identity.group_kind in LASTING else f"{_KEEP}; or delete it yourself: it isn't ours to delete"
            return Problem(str(item.identity), f"an immutable field differs: {text}", item.manifest.place, fix)
        kept = kept_by_itself(live, self.target.instance)
        if kept:
            seen = f"an immutable field changed: {text}; it would have to be deleted to be made anew, but: {kept}"
            return Problem(str(item.identity), seen, item.manifest.place, _MOVE if item.identity.group_kind in LASTING else _LIFT)
        if not self._may_recreate(item, live):
            return self._not_recreated(Problem(str(item.identity), f"an immutable field changed: {text}", item.manifest.place), item)
        declared, kind = item.manifest.body(), item.identity.group_kind
        if kind == STATEFUL_SET and not leaves_pods(live, declared):
            seen = f"an immutable field changed: {text}; made anew, it might not adopt its pods, which spec.selector must match for certain"
            return Problem(str(item.identity), seen, item.manifest.place, _MOVE)
        cause = Cause.FINISHED if kind == _JOB and is_finished(live) else Cause.ANEW
        reason = f"an immutable field changed{STAY if deletes_claims(live, 'whenDeleted') else ''}"
        change = Change(Action.RECREATE, item.identity, *uid_and_version(live), reason, manifest=item.manifest, cause=cause)
        return replace(change, takes=lost_by_write(live, declared) if kind == STATEFUL_SET else ())

    def recreating_loses(self, kind: GroupKind) -> str:
        """Return the way out of a step that would make what holds data anew; empty: nothing is lost, or the target names the kind."""
        return "" if kind not in LASTING or listed(kind, self.target.recreate.kinds) else f"write action: CreateOrUpdate; {_MOVE}"

    def kept(self, item: Desired, live: dict[str, Any]) -> Change | None:
        """Return the change of what is left as it lives, or None: an annotation says so, or it is only created where it's missing."""
        reason = item.reason if item.mode is Mode.LEAVE else left_alone(live)
        if reason or item.mode is not Mode.KEEP:
            return skipped(item, live, reason) if reason else None
        if item.reason:
            return skipped(item, live, f"only created where it is missing: {item.reason}")
        if not is_member(live, item.identity, self.ours):
            return skipped(item, live, "lives already and isn't ours; its step would only create it")
        return replace(skipped(item, live, ""), action=Action.UNCHANGED)

    def _may_recreate(self, item: Desired, live: Mapping[str, Any]) -> bool:
        """Finished Jobs always; others by annotation or option; what holds data only by the option, by name."""
        kind = item.identity.group_kind
        annotated = kind not in LASTING and may_recreate(live, item.manifest)
        return listed(kind, self.target.recreate.kinds) or annotated or (kind == _JOB and is_finished(live))

    def _not_recreated(self, problem: Problem, item: Desired) -> Problem:
        kind = item.identity.group_kind
        if kind in LASTING:
            return replace(problem, fix=_MOVE)
        settings = {"recreate.kinds": (*self.target.recreate.kinds, str(kind))}
        option = block(self.target.name, settings)
        if kind == _JOB:
            fix, instead = advice("wait until the Job has finished, or {text}", option), "or wait until the Job has finished"
        else:
            fix, instead = advice('annotate it {text}: "allow", or {text}', RECREATE, option), f'or annotate it {RECREATE}: "allow"'
        return lacking(problem, self.target.name, settings, (instead,), fix)


def adoptable_once(target: Target, owners: tuple[Owner, ...]) -> tuple[Owner, ...]:
    """Return what `anneal adopt` would name of these owners; none where a target adopts nothing, which that respects, too."""
    return owners if target.adopt != "never" else ()


def also_owned(problem: Problem, target: Target, applyset: ApplySetId, other: ForeignOwner | None) -> Problem:
    """Give the refusal of another target's object the way out by `adopt`. `other`: what else has it, which either way out needs."""
    tools, stop = (other.tools, other.stop) if other else ((), ())
    if other:
        before = block(target.name, {"adopt": in_order((*tools, *target.adopts))}) if tools else f"take it out of {other.name}"
        problem = replace(
            problem,
            message=f"{problem.message}; it belongs to {other.name}, too",
            fix=advice("first {text}; then {text}", before, problem.fix),
        )
    if other and not tools:
        return problem
    owners = in_order((applyset, *tools))
    return adopting(problem, target.name, in_order((*owners, *target.adopts)), adoptable_once(target, owners), stop)


def lift(kind: GroupKind, instead: str) -> str:
    """Return the way out where something keeps a live object from a step that would delete it; what holds data is better kept."""
    return instead if kind in LASTING else f"lift what keeps it, or {instead}"


def terminating(live: dict[str, Any], change: Change) -> Change:
    """Return the change of a live object with since when that is being deleted, and what holds it: however it is written, it goes."""
    metadata = live["metadata"]
    since = str(metadata.get("deletionTimestamp") or "")
    if not since or change.action is Action.RECREATE:
        return change
    return replace(change, terminating=since, finalizers=tuple(str(name) for name in metadata.get("finalizers") or ()))


def skipped(item: Desired, live: Mapping[str, Any], reason: str) -> Change:
    """Return the change of a declared object that isn't written. `live`: empty where that isn't known."""
    metadata = live.get("metadata") or {}
    uid, version = str(metadata.get("uid", "")), str(metadata.get("resourceVersion", ""))
    return Change(Action.SKIP, item.identity, uid, version, reason, manifest=item.manifest)


def moved(item: Desired, live: dict[str, Any]) -> str:
    """Say from which API version the record of our fields moves to git's; empty: it is there. Left, it would be lost with that version."""
    recorded = recorded_in(live)
    return f"was applied in {recorded}" if recorded not in ("", item.resource.api_version) else ""


def is_immutable(error: ApiRefused) -> bool:
    """Whether the server says nothing but that immutable fields differ."""
    text = error.words
    _, *mistakes = FIELD_ERROR.split(text)
    return error.status == 422 and not _ADMISSION.search(text) and all(_IMMUTABLE.search(part) for part in mistakes or [text])
