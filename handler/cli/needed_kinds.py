"""Which kinds a target has or wants, and where: from a render, the record and discovery. For `rbac` and `check`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from handler.cli.needed_rights import NeededKinds
from handler.cli.session import Session
from handler.cluster.discovery import Discovery
from handler.config.settings import Target
from handler.model.errors import AccessDenied, PlanRefused
from handler.model.render import Rendered
from handler.model.resource import Resource
from handler.plan.admission import declared_kinds
from handler.state.record import State


def needed(session: Session, target: Target, rendered: Rendered, *, used_only: bool = False, served_only: bool = False) -> NeededKinds:
    """Return what a target needs rights for.

    Args:
        session: the command's.
        target: the target.
        rendered: what its git declares.
        used_only: where the whitelist is `*`, only the namespaces in use.
        served_only: kinds that the API server doesn't serve are left out, for a plan tells of each.

    Raises:
        PlanRefused: the API server doesn't serve a declared kind.

    """
    discovery = session.handler.discovery(target)
    state = _state(session, target)
    bodies = [manifest.body() for manifest in rendered.manifests]
    kinds = set(_declared(bodies, discovery, served_only=served_only))
    found = ((discovery.preferred(kind)) for kind in (state.kinds if state else ()))
    for resource in found:
        if resource and resource.group_kind not in {kind.group_kind for kind in kinds}:
            kinds.add(resource)
    placed = [_placed(body, target, kinds) for body in bodies]
    namespaces = target.namespaces
    if used_only and "*" in namespaces:
        namespaces = tuple(sorted(_used(placed, target) | (state.namespaces if state else frozenset())))
    return NeededKinds(tuple(sorted(kinds, key=lambda kind: (kind.group, kind.plural))), namespaces, tuple(placed))


def _state(session: Session, target: Target) -> State | None:
    """Read the record; without the right to, what git declares must do."""
    try:
        return session.handler.store(target).read().state
    except AccessDenied:
        return None


def _declared(bodies: Iterable[dict[str, Any]], discovery: Discovery, *, served_only: bool) -> Iterator[Resource]:
    """Yield the kind of each document: one that its own CRD declares, or one that is served."""
    documents = list(bodies)
    own = dict(kind for body in documents for kind in declared_kinds(body))
    for body in documents:
        version, kind = str(body.get("apiVersion")), str(body.get("kind"))
        found = own.get((version, kind)) or discovery.find(version, kind)
        if found is None and served_only:
            continue
        if found is None:
            seen = f"the API server doesn't serve {version} {kind}"
            raise PlanRefused.of(f"{kind}/{body['metadata']['name']}", seen, fix="install its CustomResourceDefinition first")
        yield Resource(found.group, "", found.kind, found.plural, found.namespaced)


def _placed(body: dict[str, Any], target: Target, kinds: Iterable[Resource]) -> dict[str, Any]:
    """Default a document's namespace, as admission will."""
    scoped = {kind.group_kind.kind for kind in kinds if not kind.namespaced}
    metadata = body["metadata"]
    if target.namespace and not metadata.get("namespace") and body.get("kind") not in scoped:
        metadata["namespace"] = target.namespace
    return body


def _used(bodies: Iterable[dict[str, Any]], target: Target) -> set[str]:
    found = {str(body["metadata"].get("namespace") or "") for body in bodies}
    return (found | {target.namespace}) - {""}
