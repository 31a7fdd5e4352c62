"""Where there is no record: look for our label over everything that can be listed, metadata only.

Nothing found: a first run. Found: recovery; that run prunes nothing, and the next one plans fully under the guards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from handler.cluster.live import members
from handler.cluster.parallel import parallel
from handler.engine.planner.planner import Planner
from handler.model.errors import AccessDenied
from handler.model.names import GroupKind, Resource, identity_of
from handler.plan.inventory import is_member


@dataclass(frozen=True, slots=True)
class FoundMembers:
    """Which kinds have members, in which namespaces, and how many there are. `denied`: some kinds may not be read."""

    kinds: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    count: int = 0
    denied: bool = False


def scan(planner: Planner) -> FoundMembers:
    """Return where members of a target are; under namespaced RBAC in allowed namespaces only, but for kinds that may not be read."""
    kinds = planner.discovery.listable()
    try:
        return _found(planner, kinds, None)
    except AccessDenied:
        if "*" in planner.target.namespaces:
            raise
    found = FoundMembers()
    for answer in parallel([partial(_found, planner, [kind], planner.target.namespaces) for kind in kinds]):
        if not isinstance(answer, FoundMembers | AccessDenied):
            raise answer
        more = answer if isinstance(answer, FoundMembers) else FoundMembers(denied=True)
        seen, denied = found.namespaces | more.namespaces, found.denied or more.denied
        found = FoundMembers(found.kinds | more.kinds, seen, found.count + more.count, denied)
    return found


def _found(planner: Planner, kinds: Sequence[Resource], scopes: tuple[str, ...] | None) -> FoundMembers:
    listed = members(planner.api, kinds, planner.ours.selector, scopes, partial=True, vanished=set())
    found = [one for live in listed if is_member(live, one := identity_of(live), planner.ours)]
    return FoundMembers(frozenset(one.group_kind for one in found), frozenset(one.namespace for one in found) - {""}, len(found))
