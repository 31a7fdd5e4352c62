"""Where there is no record: look for our label over everything that can be listed, metadata only.

Nothing found: a first run. Found: recovery; that run prunes nothing, and the next one plans fully under the guards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from handler.cluster.live import members
from handler.cluster.parallel import parallel
from handler.engine.planner.planner import Planner
from handler.model.errors import AccessDenied, AnnealError
from handler.model.names import PART_OF, GroupKind, Resource, identity_of
from handler.plan.membership import is_member


@dataclass(frozen=True, slots=True)
class FoundMembers:
    """Where members are. `unreadable`: kinds that could not be listed."""

    kinds: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    unreadable: tuple[str, ...] = ()


def scan(planner: Planner) -> FoundMembers:
    """Return the kinds and namespaces that hold members of a target; in allowed namespaces only under namespaced RBAC."""
    try:
        return _scan(planner, None)
    except AccessDenied:
        if "*" in planner.target.namespaces:
            raise
        return _scan_readable(planner)


def _scan(planner: Planner, scopes: tuple[str, ...] | None) -> FoundMembers:
    kinds, namespaces = set(), set()
    selector = f"{PART_OF}={planner.applyset}"
    for live in members(planner.api, planner.discovery.listable(), selector, scopes, partial=True, vanished=set()):
        identity = identity_of(live)
        if is_member(live, identity, planner.target.name, planner.applyset):
            kinds.add(identity.group_kind)
            namespaces.add(identity.namespace)
    return FoundMembers(frozenset(kinds), frozenset(namespaces - {""}))


def _scan_readable(planner: Planner) -> FoundMembers:
    """LIST kind by kind, namespaced ones in the allowed namespaces, and say which kinds may not be read."""
    kinds, namespaces, unreadable = set(), set(), []
    listable = planner.discovery.listable()
    for kind, answer in zip(listable, parallel([partial(_members_of, planner, kind) for kind in listable]), strict=True):
        if isinstance(answer, AccessDenied):
            unreadable.append(str(kind.group_kind))
        elif isinstance(answer, AnnealError):
            raise answer
        elif answer:
            kinds.add(kind.group_kind)
            namespaces |= answer
    return FoundMembers(frozenset(kinds), frozenset(namespaces - {""}), tuple(unreadable))


def _members_of(planner: Planner, kind: Resource) -> set[str]:
    """Return the namespaces that hold members of a kind, the empty one for a cluster-scoped kind."""
    selector = f"{PART_OF}={planner.applyset}"
    found = members(planner.api, [kind], selector, planner.target.namespaces, partial=True, vanished=set())
    return {identity_of(live).namespace for live in found if is_member(live, identity_of(live), planner.target.name, planner.applyset)}
