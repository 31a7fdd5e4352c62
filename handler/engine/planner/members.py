"""The live members of a target, of some kinds: everywhere at once, or in each allowed namespace where RBAC is namespaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.errors import rule_text
from handler.cluster.live import Object, members
from handler.config.settings import Target
from handler.model.errors import AccessDenied, ClusterUnavailable
from handler.model.names import GroupKind, Resource
from handler.plan.inventory import Membership


def served(discovery: Discovery, kinds: Iterable[GroupKind]) -> list[Resource]:
    """Return how kinds are served; one that isn't served has no members. Raises ClusterUnavailable: its API group doesn't answer."""
    found = {kind: discovery.preferred(kind) for kind in sorted(kinds)}
    if silent := next((kind for kind, resource in found.items() if resource is None and kind.group in discovery.stale), None):
        seen = f"the API group {silent.group} doesn't answer, so its members can't be listed"
        raise ClusterUnavailable.of(str(silent), seen, fix=f"repair the APIService of {silent.group}")
    return [resource for resource in found.values() if resource]


def living(api: Api, namespaces: Iterable[str]) -> tuple[str, ...]:
    """Return the namespaces that live, or may: of the others the server says that they aren't there, so they hold nothing."""
    return tuple(name for name in sorted(namespaces) if _may_live(api, name))


def may_be_gone(denied: AccessDenied) -> AccessDenied:
    """Return the refusal of LISTs of recorded namespaces, with what helps where such a one is gone: no Role in it can help then."""
    rule = "if the namespace is gone, let that be seen: " + rule_text("get", "", "namespaces", "")
    return AccessDenied(*(replace(each, fix="; ".join(filter(None, (each.fix, rule)))) for each in denied.problems))


def _may_live(api: Api, name: str) -> bool:
    try:
        return api.get(f"/api/v1/namespaces/{name}", subject=f"Namespace/{name}") is not None
    except AccessDenied:
        return True


@dataclass(frozen=True, slots=True)
class Members:
    """How members are read. `api`: with the target's identity; `scopes`: the recorded namespaces; None: everywhere."""

    api: Api
    discovery: Discovery
    target: Target
    ours: Membership
    scopes: tuple[str, ...] | None = None

    def listed(self, kinds: Iterable[GroupKind]) -> list[Object]:
        """LIST the members of these kinds; those that the cluster doesn't serve have none. Raises AnnealError."""
        resources = [found for kind in sorted(kinds) if (found := self.discovery.preferred(kind))]
        try:
            return list(members(self.api, resources, self.ours.selector, self.scopes, vanished=set()))
        except AccessDenied:
            if self.scopes is not None or "*" in self.target.namespaces:
                raise
        return list(members(self.api, resources, self.ours.selector, self.target.namespaces, vanished=set()))
