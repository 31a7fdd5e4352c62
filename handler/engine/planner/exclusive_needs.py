"""What keeps undeclared objects that others need: what stays names them, or something that may not go would go with them. Writes nothing.

    declared objects     by their manifests
    live objects         of all kinds there that may name others, but for those that go; of those that no namespace has, which do name some

Law: where that can't be read, what may be needed stays. Bodies are read page by page, and no more than names is kept of them; only where
something may go, one LIST of each kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from handler.cluster.api import Api
from handler.cluster.live import Listing, pages
from handler.cluster.parallel import parallel
from handler.engine.planner.exclusive_content import ExclusiveContent, Needed, Object, why_needed
from handler.model.advice import advice
from handler.model.errors import AnnealError, ApiRefused
from handler.model.manifest import Manifest
from handler.model.names import PART_OF, Identity, Resource, identity_of, kubectl
from handler.plan.exclusive import is_looked_for, is_read_for_names, may_own_data
from handler.plan.references import NAMED_BY_FIELD, Named, may_name, named_by, user_of
from handler.plan.system_objects import is_silent

_WORKERS = 8


@dataclass(frozen=True, slots=True)
class User:
    """A live object. `names`: the uids of orphans, each with what of it that names: `it`, or what it owns."""

    uid: str
    identity: Identity
    names: Mapping[str, str]

    def naming(self, uid: str) -> str:
        """Say what it names of an orphan."""
        return f"{self.identity} names {self.names[uid]}; declare it, too"


@dataclass(frozen=True, slots=True)
class Users:
    """The live objects that name orphans. `unasked`: by namespace what couldn't be listed, so that some may be missing."""

    seen: ExclusiveContent
    found: tuple[User, ...] = ()
    unasked: Mapping[str, str] = field(default_factory=dict)

    def of(self, leaving: Collection[str]) -> dict[str, User]:
        """Return which of the orphans that would go something names that stays, each with that: one that stays so is such a thing, too."""
        used: dict[str, User] = {}
        while True:
            left = {*leaving} - used.keys()
            going = self.seen.going_with(left)
            more = {uid: user for user in self.found if user.uid not in going for uid in user.names.keys() & left}
            if not more:
                return used
            used |= more


@dataclass(frozen=True, slots=True)
class Needs:
    """What keeps orphans that others need.

    `named`: by git; `owning`: see `ExclusiveContent.owning`; `unread`: namespaces in which not all of this is known; `used`: see
    `Users.of`; `unasked`: see `Users`.
    """

    named: Mapping[Named, Identity] = field(default_factory=dict)
    owning: Mapping[str, str] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    used: Mapping[str, User] = field(default_factory=dict)
    unasked: Mapping[str, str] = field(default_factory=dict)

    def why(self, identity: Identity, uid: str) -> str:
        """Return why an orphan stays; empty: nothing needs it."""
        if data := self.by_data(identity, uid):
            return data
        if user := user_of(identity, self.named):
            return f"{user} names it; declare it, too"
        if uid in self.used:
            return self.used[uid].naming(uid)
        kinds = self.unasked.get(identity.namespace) if identity.kind in NAMED_BY_FIELD else None
        return f"{kinds} can't be listed, so whether one names it isn't known" if kinds else ""

    def by_data(self, identity: Identity, uid: str) -> str:
        """Return why an orphan stays for what it owns; empty: that may go with it."""
        if goes := self.owning.get(uid):
            return advice("{text} would go with it; if that may go: {text}", goes, kubectl("delete", identity))
        unread = may_own_data(identity.group_kind) and self.unread & {"", identity.namespace}
        return "not all that lives there can be listed, so whether it owns what holds data isn't known" if unread else ""


def named_in_git(manifests: Iterable[Manifest]) -> dict[Named, Identity]:
    """Return what declared objects name, each with an object that names it."""
    return named_by((each.identity, each.body()) for each in manifests if may_name(each.identity.group_kind))


def users(api: Api, kinds: Iterable[Resource], seen: ExclusiveContent, leaving: Mapping[str, Identity]) -> Users:
    """Return what names orphans, and add to `seen` what owns what there. `kinds`: all that are served; `leaving`: those that may go.

    Only the namespaces of these are looked at, and what no namespace has. What can't name anything is listed only where an ApplySet has
    it, for its owners.
    """
    spaces = sorted({identity.namespace for identity in leaving.values()})
    silent = min((group for group in seen.silent if not is_silent(group)), default="")
    unasked = dict.fromkeys(spaces, f"the objects of API group {silent} there") if silent else {}
    wanted: dict[Named, dict[str, str]] = {}
    owned = ((each, dict.fromkeys(uids, "what it owns")) for each, uids in seen.named_with(leaving).items())
    for each, orphans in (*owned, *((each, {uid: "it"}) for uid, each in leaving.items())):
        for space in (each.namespace, ""):  # a name without a namespace, in what has none, may mean any
            wanted.setdefault((each.kind, space, each.name), {}).update(orphans)
    scopes = [(kind, space) for kind in kinds for space in _scopes(kind, spaces)]
    tasks = [partial(_read, api, kind, space, wanted) for kind, space in scopes if (kind.group_kind, space) not in seen.failed]
    answers = iter(parallel(tasks, _WORKERS))
    found: list[User] = []
    for kind, space in scopes:
        answer = seen.failed.get((kind.group_kind, space)) or next(answers)
        if isinstance(answer, AnnealError):
            unasked = _unread(kind, space, spaces, answer, seen) | unasked
            continue
        seen.owners |= answer.owners
        seen.marked |= answer.marked
        found += answer.users
    return Users(seen, tuple(found), unasked)


def _scopes(kind: Resource, spaces: Sequence[str]) -> Sequence[str]:
    if is_looked_for(kind):
        return spaces
    return [""] if spaces and is_read_for_names(kind) else ()


def _unread(kind: Resource, space: str, spaces: Sequence[str], error: AnnealError, seen: ExclusiveContent) -> dict[str, str]:
    """Return, by namespace, what couldn't be listed and may name something there; in one, it may own something, too."""
    if not space:
        return dict.fromkeys(spaces, f"{kind.plural}, which no namespace has,")
    seen.failed.setdefault((kind.group_kind, space), error)
    return {space: f"{kind.plural} there"} if may_name(kind.group_kind) else {}


@dataclass(frozen=True, slots=True)
class _Read:
    """One LIST: what names orphans, the uids of owners, by uid, and what may not go with them."""

    users: list[User] = field(default_factory=list)
    owners: dict[str, tuple[str, ...]] = field(default_factory=dict)
    marked: Needed = field(default_factory=dict)


def _read(api: Api, kind: Resource, space: str, wanted: Mapping[Named, Mapping[str, str]]) -> _Read:
    found, names = _Read(), may_name(kind.group_kind)
    try:
        for page in pages(api, Listing(kind, space, "" if names else PART_OF, partial=not names)):
            for live in page:
                _note(live, found, wanted, names=names)
    except ApiRefused as error:
        if error.status != 404:  # its CRD is gone, and all of its objects with it
            raise
    return found


def _note(live: Object, found: _Read, wanted: Mapping[Named, Mapping[str, str]], *, names: bool) -> None:
    uid, identity, metadata = str(live["metadata"].get("uid")), identity_of(live), live["metadata"]
    if owners := tuple(str(each.get("uid")) for each in metadata.get("ownerReferences") or ()):
        found.owners[uid] = owners
        if why := why_needed(live, identity):
            found.marked[identity] = owners, why
    named = named_by([(identity, live)]) if names else {}
    if used := {uid: what for name in wanted.keys() & named.keys() for uid, what in wanted[name].items()}:
        found.users.append(User(uid, identity, used))
