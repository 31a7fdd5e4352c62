"""Where there is no state: look for our label over everything that can be listed, metadata only.

Nothing found: a first run. Found: recovery; that run prunes nothing and the next one plans fully under the guards.
"""

from __future__ import annotations

from dataclasses import dataclass

from handler.cluster.live import members
from handler.model.errors import AccessDenied
from handler.model.names import PART_OF, GroupKind, identity_of
from handler.plan.adopt import is_member
from handler.run.planning import Planner


@dataclass(frozen=True, slots=True)
class Found:
    """Where members are. `unreadable`: kinds that could not be listed."""

    kinds: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    unreadable: tuple[str, ...] = ()


def scan(planner: Planner) -> Found:
    """Return the kinds and namespaces that hold members of a target; in allowed namespaces only under namespaced RBAC."""
    try:
        return _scan(planner, None)
    except AccessDenied:
        if "*" in planner.target.namespaces:
            raise
        return _scan_readable(planner)


def _scan(planner: Planner, scopes: tuple[str, ...] | None) -> Found:
    kinds, namespaces = set(), set()
    selector = f"{PART_OF}={planner.applyset}"
    for live in members(planner.api, planner.discovery.listable(), selector, scopes, partial=True, vanished=set()):
        identity = identity_of(live)
        if is_member(live, identity, planner.target.name, planner.applyset):
            kinds.add(identity.group_kind)
            namespaces.add(identity.namespace)
    return Found(frozenset(kinds), frozenset(namespaces - {""}))


def _scan_readable(planner: Planner) -> Found:
    """LIST kind by kind in the allowed namespaces, and say which kinds may not be read."""
    kinds, namespaces, unreadable = set(), set(), []
    for kind in (kind for kind in planner.discovery.listable() if kind.namespaced):
        try:
            selector = f"{PART_OF}={planner.applyset}"
            for live in members(planner.api, [kind], selector, planner.target.namespaces, partial=True, vanished=set()):
                kinds.add(kind.group_kind)
                namespaces.add(live["metadata"]["namespace"])
        except AccessDenied:
            unreadable.append(str(kind.group_kind))
    return Found(frozenset(kinds), frozenset(namespaces), tuple(unreadable))
