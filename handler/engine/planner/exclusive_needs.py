"""What keeps undeclared objects that others need: what stays names them, or something that may not go would go with them. Writes nothing.

    declared objects     by their manifests
    pods, accounts       that live on: not those of an orphan that goes
    what is left alone   of any kind that may name others: another tool's workloads, which may run no pod now

Law: where that can't be read, what may be needed stays. Bodies are read page by page, and no more than names is kept of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from handler.cluster.api import Api
from handler.cluster.live import Listing, pages
from handler.cluster.parallel import parallel
from handler.engine.planner.exclusive_content import UNMARKED, ExclusiveContent
from handler.model.errors import AnnealError
from handler.model.manifest import Manifest
from handler.model.names import GroupKind, Identity, Resource, identity_of, kubectl
from handler.plan.exclusive import ACCOUNT, may_own_data
from handler.plan.references import NAMED_BY_FIELD, Named, may_name, named_by

_POD = GroupKind("", "Pod")
_WORKERS = 8


@dataclass(frozen=True, slots=True)
class Needs:
    """What keeps orphans that others need.

    `named`: by what stays; `owning`: see `ExclusiveContent.owning`; `unread`, `unasked`: namespaces in which not all of this is known.
    """

    named: Mapping[Named, Identity] = field(default_factory=dict)
    owning: Mapping[str, str] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    unasked: Mapping[str, str] = field(default_factory=dict)

    def also(self, named: Mapping[Named, Identity], unasked: Mapping[str, str]) -> Needs:
        """Return these needs, and those of live objects. `unasked`: what couldn't be listed, by namespace."""
        return replace(self, named={**named, **self.named}, unasked=unasked)

    def why(self, identity: Identity, uid: str) -> str:
        """Return why an orphan stays; empty: nothing needs it."""
        if data := self.by_data(identity, uid):
            return data
        if user := self.named.get((identity.kind, identity.namespace, identity.name)):
            return f"{user} names it; declare it, too"
        kinds = self.unasked.get(identity.namespace) if identity.kind in NAMED_BY_FIELD else None
        return f"{kinds} there can't be listed, so whether one names it isn't known" if kinds else ""

    def by_data(self, identity: Identity, uid: str) -> str:
        """Return why an orphan stays for what it owns; empty: that may go with it."""
        if goes := self.owning.get(uid):
            return f"{goes} would go with it; if that may go: {kubectl('delete', identity)}"
        unread = may_own_data(identity.group_kind) and self.unread & {"", identity.namespace}
        return "what holds data there can't be listed, so whether it owns some isn't known" if unread else ""


def named_in_git(manifests: Iterable[Manifest]) -> dict[Named, Identity]:
    """Return what declared objects name, each with an object that names it."""
    return named_by((each.identity, each.body()) for each in manifests if may_name(each.identity.group_kind))


def users(
    api: Api, kinds: Iterable[Resource], seen: ExclusiveContent, leaving: Mapping[str, Identity]
) -> tuple[dict[Named, Identity], dict[str, str]]:
    """Return what live objects name that stay though git doesn't declare them, and which kinds couldn't be listed, by namespace.

    `kinds`: all that are served; `leaving`: the orphans that go, by uid: only their namespaces are looked at, and neither they nor their
    pods count.
    """
    spaces = sorted({identity.namespace for identity in leaving.values()})
    running = [(kind, space) for kind in kinds if kind.group_kind in (_POD, ACCOUNT) for space in spaces]
    left = [(kind, space) for kind, space in seen.scopes if space in spaces and may_name(kind.group_kind)]
    scopes = list(dict.fromkeys((*running, *left)))
    answers = parallel([partial(_named, api, kind, space, seen, leaving) for kind, space in scopes], _WORKERS)
    named: dict[Named, Identity] = {}
    unasked: dict[str, str] = {}
    for (kind, space), answer in zip(scopes, answers, strict=True):
        if isinstance(answer, AnnealError):
            unasked.setdefault(space, kind.plural)
        else:
            named |= answer
    return named, unasked


def _named(api: Api, kind: Resource, space: str, seen: ExclusiveContent, leaving: Collection[str]) -> dict[Named, Identity]:
    return named_by(_staying(api, kind, space, seen, leaving))


def _staying(
    api: Api, kind: Resource, space: str, seen: ExclusiveContent, leaving: Collection[str]
) -> Iterator[tuple[Identity, dict[str, Any]]]:
    for page in pages(api, Listing(kind, space, UNMARKED)):
        for live in page:
            uid = str(live["metadata"].get("uid"))
            if not seen.is_below(uid, leaving) if kind.group_kind in (_POD, ACCOUNT) else uid in seen.left:
                yield identity_of(live), live
