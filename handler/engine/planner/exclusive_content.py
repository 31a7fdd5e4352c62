"""LISTs of exclusive namespaces: what may be an orphan there, what is declared, what is left alone, and what owns what. Writes nothing.

Metadata alone; of what is left alone or declared no more than its uid is kept. A LIST that fails is known, and leaves its kind out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from handler.cluster.api import Api
from handler.cluster.live import metadata
from handler.cluster.parallel import parallel
from handler.model.errors import AnnealError, ApiRefused
from handler.model.names import PART_OF, GroupKind, Identity, Resource, identity_of
from handler.plan.dependants import Dependant, dependant_of
from handler.plan.exclusive import DATA, SYSTEM, account_of_token, left_alone, own_rights, taken_apart
from handler.plan.prune import kept_by_mark
from handler.plan.references import NAMED_BY_FIELD, Named, user_of
from handler.plan.system_objects import is_silent
from handler.state.record_format import is_recordable

UNMARKED = f"!{PART_OF}"
_PRECONDITIONS = ("uid", "resourceVersion")  # what an aggregated API serves without them can't be deleted safely
_WORKERS = 8
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # the whole object once more

_OWN = "is the target's own"

Object = dict[str, Any]
Needed = dict[Identity, tuple[tuple[str, ...], str]]  # what may not go: the uids of its owners, and why
Rights = Mapping[str, Collection[Identity] | None]  # by exclusive namespace: see `own_rights`
_NO_RIGHTS: Rights = {}


@dataclass(slots=True)
class _Listed:
    """One LIST: what may be an orphan, what is declared, by uid, how much else is left alone, by noun, and the uids of owners, by uid.

    `needed`: what may not go and has owners, with their uids, and why; `owned`: what others may name and has owners, with these.
    """

    orphans: dict[str, Object] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    left: dict[str, str] = field(default_factory=dict)
    owners: dict[str, tuple[str, ...]] = field(default_factory=dict)
    needed: Needed = field(default_factory=dict)
    owned: dict[Identity, tuple[str, ...]] = field(default_factory=dict)
    dependants: list[Dependant] = field(default_factory=list)


@dataclass(slots=True)
class ExclusiveContent:
    """What all LISTs have found, an object that several kinds serve once.

    `silent`: API groups that don't answer; `owners`, `needed`, `owned`: see `_Listed`; `marked`: as `needed`, of what was read for names.
    """

    silent: frozenset[str]
    orphans: dict[str, Object] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    left: dict[str, tuple[str, str]] = field(default_factory=dict)
    owners: dict[str, tuple[str, ...]] = field(default_factory=dict)
    needed: Needed = field(default_factory=dict)
    owned: dict[Identity, tuple[str, ...]] = field(default_factory=dict)
    marked: Needed = field(default_factory=dict)
    dependants: list[Dependant] = field(default_factory=list)
    failed: dict[tuple[GroupKind, str], AnnealError] = field(default_factory=dict)

    def add(self, resource: Resource, namespace: str, answer: _Listed | AnnealError) -> None:
        """Take what one LIST has found."""
        if isinstance(answer, AnnealError):
            self.failed[resource.group_kind, namespace] = answer
            return
        self.orphans = answer.orphans | self.orphans  # the first kind that serves it names it
        self.declared |= answer.declared
        self.left |= {uid: (namespace, noun) for uid, noun in answer.left.items()}
        self.owners |= answer.owners
        self.needed |= answer.needed
        self.owned |= answer.owned
        self.dependants += answer.dependants

    def drop_declared(self, uids: Collection[str]) -> None:
        """Forget orphans that another kind declares or leaves alone. `uids`: of what lives of git's."""
        for uid in {*self.declared, *uids, *self.left} & self.orphans.keys():
            del self.orphans[uid]

    def keep_named(self, named: Mapping[Named, Identity]) -> None:
        """Take what git names and has owners as what may not go with these. `named`: see `named_by`."""
        for identity, uids in self.owned.items():
            if user := user_of(identity, named):
                self.needed.setdefault(identity, (uids, f"{user} names"))

    def lacks(self, identity: Identity) -> bool:
        """Whether an object of this kind may live without having been seen."""
        return (identity.group_kind, identity.namespace) in self.failed or identity.group in self.silent

    def going_with(self, uids: Collection[str]) -> set[str]:
        """Return the uids of some objects and of what goes when they do: what no other object owns."""
        found, more = set[str](), {*uids}
        while more:
            found |= more
            more = {uid for uid, owners in self.owners.items() if uid not in found and found.issuperset(owners)}
        return found

    def above(self, uids: Iterable[str]) -> set[str]:
        """Return the uids of some objects and of what owns them, through whatever owns that in turn."""
        found, going = set[str](), list(uids)
        while going:
            uid = going.pop()
            if uid not in found:
                found.add(uid)
                going += self.owners.get(uid, ())
        return found

    def named_with(self, uids: Collection[str]) -> dict[Identity, set[str]]:
        """Return what others may name and would go with some objects, each with the uids of these."""
        found = {identity: self.above(owners).intersection(uids) for identity, owners in self.owned.items()}
        return {identity: roots for identity, roots in found.items() if roots}

    def owning(self, members: Mapping[Identity, tuple[str, ...]] | None = None) -> dict[str, str]:
        """Return the uids of what owns something that may not go with it, through whatever owns that in turn, each with what would go.

        `members`: the uids of what owns members.
        """
        own = {identity: (uids, _OWN) for identity, uids in (members or {}).items()}
        found: dict[str, str] = {}
        for identity, (uids, why) in {**self.marked, **own, **self.needed}.items():
            found |= dict.fromkeys(self.above(uids), f"{identity}, which {why},")
        return found

    def unread(self) -> frozenset[str]:
        """Return the namespaces in which not all could be listed; an API group that doesn't answer is all of them: ""."""
        return frozenset({"" for group in self.silent if not is_silent(group)} | {space for _, space in self.failed})

    def notes(self) -> Iterator[str]:
        """Yield what is left alone, and what couldn't be read."""
        counted = Counter(self.left.values())
        for space in sorted({space for space, _ in counted}):
            nouns = [f"{noun} ({number})" for (place, noun), number in sorted(counted.items()) if place == space]
            yield f"namespace {space}: left alone though git doesn't declare them: {', '.join(nouns)}"
        for space in sorted({space for _, space in self.failed}):
            errors = {kind: error for (kind, place), error in sorted(self.failed.items(), key=lambda each: each[0]) if place == space}
            seen = f"{', '.join(map(str, errors))} of namespace {space} can't be listed, so none of them is an orphan"
            yield f"{seen}: {next(iter(errors.values())).problems[0].message}"
        for group in sorted(self.silent):
            yield f"the API group {group} doesn't answer, so nothing of it is an orphan; repair its APIService"


def _unmarked(kind: GroupKind) -> str:
    return "" if kind in DATA else UNMARKED


def read(
    api: Api,
    wanted: Sequence[tuple[Resource, str]],
    silent: frozenset[str],
    declared: Collection[Identity] = (),
    rights: Rights = _NO_RIGHTS,
    selector: Callable[[GroupKind], str] = _unmarked,
) -> ExclusiveContent:
    """List the metadata of kinds in namespaces.

    `silent`: groups that don't answer; `declared`: all that git declares; `rights`: see `Rights`; `selector`: of the labels of a kind's
    objects.
    """
    answers = parallel([partial(_listed, api, *each, declared, rights, selector(each[0].group_kind)) for each in wanted], _WORKERS)
    seen = ExclusiveContent(silent)
    for (resource, name), answer in zip(wanted, answers, strict=True):
        seen.add(resource, name, answer)
    return seen


def _listed(api: Api, resource: Resource, namespace: str, declared: Collection[Identity], rights: Rights, selector: str) -> _Listed:
    found = _Listed()
    try:
        for live in metadata(api, resource, namespace, selector):
            if (live["metadata"].get("namespace"), all(map(live["metadata"].get, _PRECONDITIONS))) == (namespace, True):
                _note_owners(live, found, declared)
                _sort(live, found, declared, rights.get(namespace, ()))
    except ApiRefused as error:
        if error.status != 404:  # its CRD is gone, and all of its objects with it
            raise
    return found


def _note_owners(live: Object, found: _Listed, declared: Collection[Identity]) -> None:
    metadata, identity = live["metadata"], identity_of(live)
    owners = tuple(str(each.get("uid")) for each in metadata.get("ownerReferences") or ())
    if owners:
        found.owners[str(metadata["uid"])] = owners
        found.dependants += filter(None, [dependant_of(live, kept=kept_by_mark(metadata))])
        if identity.kind in NAMED_BY_FIELD:
            found.owned[identity] = owners
    if account := account_of_token(metadata):
        found.needed[identity] = (account,), "is a token of it"
    elif owners and (why := why_needed(live, identity, declared)):
        found.needed[identity] = owners, why


def why_needed(live: Object, identity: Identity, declared: Collection[Identity] = ()) -> str:
    """Return why a live object may not go with what owns it; empty: it may."""
    if identity.group_kind in DATA:
        return "holds data"
    if identity in declared:
        return _OWN
    if PART_OF in (live["metadata"].get("labels") or {}):
        return "is a member of an ApplySet"
    finalizer = taken_apart(live, identity.group_kind)
    return f"its operator takes apart by finalizer {finalizer}" if finalizer else ""


def _sort(live: Object, found: _Listed, declared: Collection[Identity], rights: Collection[Identity] | None) -> None:
    identity, uid = identity_of(live), str(live["metadata"]["uid"])
    if identity in declared:
        found.declared.add(uid)
        return
    if PART_OF in (live["metadata"].get("labels") or {}):  # what holds data is listed with its members
        return
    noun = left_alone(live, identity)
    noun = own_rights(identity, rights) if noun is None else noun
    noun = "what a record can't name" if noun is None and not is_recordable(identity) else noun
    if noun is None:
        kept = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
        (kept.get("annotations") or {}).pop(_LAST_APPLIED, None)
        found.orphans[uid] = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": kept}
    elif noun != SYSTEM:
        found.left[uid] = noun
