"""An object between two targets of one repository: what the giver leaves, what the taker may take, and what is refused. Pure.

    the giver      doesn't declare it any more: while a sibling does, or may, it is left untouched
    the taker      declares it, and it carries a sibling's marks: taken, unless that sibling declares it at the commit it should be on;
                   what the taker only creates where it is missing, or leaves alone, changes its marks and nothing else
    both declare   the one that doesn't own it is refused, naming both files

Law: nothing that a sibling declares, or may declare, is deleted, and nothing is taken from a sibling that declares it or can't be rendered.
A target of another repository, revision, cluster or installation is no sibling: what carries its marks is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from handler.config.settings import Target
from handler.model.advice import advice, together
from handler.model.errors import AnnealError, Problem
from handler.model.instance import is_instance, template_of
from handler.model.manifest import Manifest
from handler.model.names import ACTS, IDENTITY, PART_OF, Identity, kubectl
from handler.model.plan import Action, Change
from handler.plan.admission import NAMESPACE, Desired, allows, listed
from handler.plan.inventory import Membership, marks_of
from handler.plan.judge import skipped
from handler.plan.references import Named, user_of

HAND_OVER = "hand over to"


@dataclass(frozen=True, slots=True)
class StandingCommit:
    """The commit that a target should be on. `why`: what keeps it off the head, `way_out`: what ends that; empty: nothing."""

    commit: str
    why: str = ""
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a sibling declares at one commit: `places` of its objects and hooks, as file:line.

    `names`: what those name, where that is asked for; `failure`: why that isn't known, or can't be applied; `empty`: it is known to be
    nothing.
    """

    target: str
    standing: StandingCommit
    places: Mapping[Identity, str] = field(default_factory=dict)
    hooks: Mapping[Identity, str] = field(default_factory=dict)
    names: Mapping[Named, Identity] = field(default_factory=dict)
    failure: AnnealError | None = None
    empty: bool = False


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """The record of a target that isn't configured. `installation`: another one that writes it; empty: this one does.

    `ours`: it is of the taker's repository, too; `elsewhere`: in another namespace than ours are in; `shared`: another configuration may
    have written it, so that no command which deletes is named for it.
    """

    target: str
    namespace: str
    installation: str
    ours: bool = False
    elsewhere: bool = False
    shared: bool = False

    def __str__(self) -> str:
        return f"ConfigMap/{self.namespace}/anneal-{self.target}"


def may_declare(target: Target, identity: Identity) -> bool:
    """Whether a target's whitelists allow an object."""
    if identity.namespace:
        return allows(target, identity.namespace)
    return listed(identity.group_kind, target.cluster_scoped) and (identity.group_kind != NAMESPACE or allows(target, identity.name))


def kept_for(identity: Identity, found: Iterable[Declared]) -> tuple[str, str]:
    """Return the sibling for which a giver leaves an object, and the reason; empty: none. `found`: siblings, read until one declares it."""
    rest = []
    for declared in found:
        rest.append(declared)
        if identity in declared.places:
            standing = declared.standing
            more = f", which {standing.why}; {standing.way_out} ends that" if standing.why else ""
            return declared.target, f"{HAND_OVER} {declared.target}{more}"
    for declared in rest:
        if identity in declared.hooks and identity.group_kind not in ACTS:
            seen = f"target {declared.target} declares it as a hook at {declared.hooks[identity]}, and a hook takes nothing over"
            return declared.target, f"{seen}: give the hook another name, or have {declared.target} apply the object first"
    for declared in rest:
        content = next((item for item in declared.places if identity.group_kind == NAMESPACE and item.namespace == identity.name), None)
        if content:
            return declared.target, f"target {declared.target} declares {content} in it"
    for declared in rest:
        if declared.failure:
            seen = f"target {declared.target} may declare it and can't be rendered at {declared.standing.commit[:12]}"
            return declared.target, f"{seen}: {declared.failure.problems[0]}"
    return "", ""


def named_for(identity: Identity, found: Iterable[Declared]) -> str:
    """Return which object of a sibling names one that it doesn't declare, applied or not; empty: none."""
    users = ((declared.target, user_of(identity, declared.names)) for declared in found)
    return next((f"{user} of target {target} names it" for target, user in users if user), "")


def refused(item: Desired, owner: Declared) -> Problem | None:
    """Return why a taker may not have what a sibling owns, or None."""
    subject, place = str(item.identity), item.manifest.place
    if owner.failure and not owner.empty:
        seen = f"belongs to target {owner.target}, which can't be rendered at {owner.standing.commit[:12]}: {owner.failure.problems[0]}"
        return Problem(subject, seen, place, f"mend target {owner.target}: only its commit says whether it gives the object up")
    theirs = owner.places.get(item.identity) or owner.hooks.get(item.identity)
    if theirs is None:
        return None
    standing = owner.standing
    seen = f"belongs to target {owner.target}, which declares it, too, at {theirs}"
    if standing.why:
        return Problem(
            subject, f"{seen} of {standing.commit[:12]}: it {standing.why}", place, advice("{text} lets go of it", standing.way_out)
        )
    return Problem(subject, seen, place, "take it out of one of the two files")


def left_off_head(item: Desired, live: Mapping[str, Any], owner: Declared, commit: str) -> Change | None:
    """Return the change of what a target off the head declares too, and has handed over since; None: it may take it back."""
    theirs = owner.places.get(item.identity)
    if theirs is None or owner.standing.why:
        return None
    seen = f"belongs to target {owner.target}, which declares it at {theirs} of the head; this target is at {commit[:12]}"
    return replace(skipped(item, live, seen), sibling=owner.target)


def refused_to_strangers(item: Desired, owner: str, taker: str, record: FoundRecord | None = None, *, known: bool) -> Problem:
    """Refuse what belongs to a target that is no sibling, with the commands that move it.

    `known`: that is configured here, too; else `record`: its record, None: it isn't seen.
    """
    identity = item.identity
    label, annotate = (advice("`{text}`", kubectl(verb, identity, f"{key}-")) for verb, key in (("label", PART_OF), ("annotate", IDENTITY)))
    pause, resume = advice("`anneal suspend {}`", owner), advice("`anneal resume {}`", owner)
    take_out, applies = f"take it out of the repository of {owner}", advice("`anneal apply {}`", taker)
    if known:
        stranger = "which isn't of this repository, revision and cluster"
        seen = f"belongs to target {owner}, {f'an instance of {template_of(owner)}' if is_instance(owner) else stranger}"
        steps = together(", ", (pause, take_out, label, annotate, applies, resume))
        return Problem(str(identity), seen, item.manifest.place, advice("to move it without deleting it, in this order: {text}", steps))
    if record and record.ours and owner == taker:
        seen = f"belongs to another record of this target, {record}"
        ways = (
            advice("write `stateNamespaceFrom: {yaml}` before this one deploys anything", record.namespace),
            _retire(owner, record, "--keep"),
        )
        return Problem(str(identity), seen, item.manifest.place, together("; once it has: ", ways))
    if record and record.ours:
        moved = advice(" and `stateNamespaceFrom: {yaml}` beside `stateNamespace`", record.namespace) if record.elsewhere else ""
        seen = f"belongs to target {owner}, which isn't configured any more; its record is {record}"
        if is_instance(owner):
            return Problem(str(identity), seen, item.manifest.place, _end_of_template(owner, taker, record))
        renamed = advice("if it was renamed, write `renamedFrom: {yaml}` on target {text}{text}", owner, taker, moved)
        prunes = _pruning(owner, record, "that")
        gone = advice("if it is gone, {text} lets go of what it had, {text}", _retire(owner, record, "--keep"), prunes)
        return Problem(str(identity), seen, item.manifest.place, together("; ", (renamed, gone)))
    if record:
        place = f"installation {record.installation}" if record.installation else "another repository"
        seen = f"belongs to target {owner} of {place}, whose record is {record}"
        steps = together(
            ", ", (advice("{text} and {text}", _there("suspend", owner), take_out), label, annotate, applies, _there("resume", owner))
        )
        return Problem(str(identity), seen, item.manifest.place, advice("to move it without deleting it, in this order: {text}", steps))
    renamed = f"if it was renamed, call it {owner} again"
    gone = advice("if it is gone, release what it had: {text}", together(", ", (label, annotate, applies)))
    pause, resume = _there("suspend", owner), _there("resume", owner)
    elsewhere = advice("if another installation has it, before that {text} and {text}, and at the end {text}", pause, take_out, resume)
    seen = f"belongs to target {owner}, which this configuration doesn't know"
    return Problem(str(identity), seen, item.manifest.place, together("; ", (renamed, gone, elsewhere)))


def _end_of_template(owner: str, taker: str, record: FoundRecord) -> str:
    """Return how the instances of a template end that isn't configured any more, and how those of another take over what they had."""
    template = template_of(owner)
    prunes = _pruning(template, record, "what its instances had and is declared no more, and lets go of the rest")
    keeps = advice("{text} lets go of all of it", _retire(template, record, "--keep"))
    line = f"`trigger: {{resource: {{adoptUnowned: true}}}}` on target {template_of(taker)}"
    return together("; ", (prunes, keeps, f"then {line} takes over what it declares" if is_instance(taker) else ""))


def _there(verb: str, owner: str) -> str:
    """Name a command of another configuration; `-c` keeps it from being completed with the flags of this one."""
    return advice("`anneal -c THEIR_FILE {} {}`", verb, owner)


def refused_to_namesake(item: Desired, name: str) -> Problem:
    """Refuse what carries the taker's own name and another ApplySet's label."""
    seen = f"carries the name of target {name}, and another ApplySet's label: it is another installation's, or a tool has labelled it"
    return Problem(str(item.identity), seen, item.manifest.place, "if another installation has it, call one of the two targets otherwise")


def _pruning(owner: str, record: FoundRecord, what: str) -> str:
    if record.shared:
        return advice("{text} shows that, and whose it is", _retire(owner, record, "--prune", "--dry-run"))
    return advice("{text} deletes {text}", _retire(owner, record, "--prune"), what)


def _retire(owner: str, record: FoundRecord, *ways: str) -> str:
    place = ["--state-namespace", record.namespace] if record.elsewhere else []
    return advice("`anneal retire {}{words}`", owner, [*ways, *place])


def taken_from(giver: str, change: Change) -> Change:
    """Return the change of an object that its giver doesn't declare any more."""
    more = f"; {change.reason}" if change.action is Action.RECREATE else ""
    action = Action.UPDATE if change.action is Action.UNCHANGED else change.action
    return replace(change, action=action, reason=f"taken over from {giver}{more}", adopted=True, sibling=giver)


def relabelled(ours: Membership, change: Change, marks: Manifest | None = None) -> Change:
    """Return the change of a member that carries our former marks still. `marks`: all that is written of it; None: the change itself is."""
    before = ours.former.target if ours.former else ""
    reason = f"taken over from {f'target {before}' if before != ours.marks.target else 'the former state namespace'}"
    if change.action is Action.RECREATE or change.reason:
        reason = f"{reason}; {change.reason}"
    if marks is None:
        return replace(change, reason=reason)
    return replace(change, action=Action.UPDATE, reason=f"{reason}; its content stays as it is", manifest=marks, marks_only=True)


def marks_taken_from(giver: str, change: Change, item: Desired) -> Change:
    """Return the change of an object of which only the marks are written."""
    taken = taken_from(giver, change)
    return replace(taken, reason=f"{taken.reason}; its content stays as it is", manifest=marks_of(item.manifest), marks_only=True)
