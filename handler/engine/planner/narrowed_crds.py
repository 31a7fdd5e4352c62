"""Which fields live custom resources lose once their CRD has a narrower schema; asked only where it is narrower. Writes nothing.

Law: the server prunes what a schema lacks as an object is next read or written, so such a change waits for a person, and is refused where
prune is off.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.live import Listing, pages
from handler.config.settings import Target
from handler.model.errors import AccessDenied, PlanRefused, Problem
from handler.model.manifest import at, canonical, items_at
from handler.model.names import GroupKind, Resource
from handler.model.numbers import many
from handler.model.plan import Action, Change
from handler.plan import crd_schema
from handler.plan.admission import CRD
from handler.plan.compare import Comparison
from handler.plan.guards import Key
from handler.plan.missing_settings import lacking

_NAMED = 3  # fields that a reason names


def losing_fields(comparison: Comparison, changes: Iterable[Change], api: Api, discovery: Discovery, target: Target) -> dict[Key, str]:
    """Return what a person must approve of CRDs that lose fields, each with why. Raises PlanRefused: prune is off."""
    found, problems = dict[Key, str](), list[Problem]()
    known = {**comparison.unowned, **comparison.undecided}
    for change in changes:
        live = known.get(change.identity)
        if change.action is not Action.UPDATE or change.identity.group_kind != CRD or live is None or change.manifest is None:
            continue
        lost, seen = _lost(live, change.manifest.body(), api, discovery)
        if seen:
            named = f"{change.identity} without {hashlib.sha256(canonical(sorted(lost))).hexdigest()[:12]} of its instances"
            found["lose", named, change.uid] = f"{change.identity}: {seen}"
            problem = Problem(str(change.identity), f"{seen}, and prune is off", change.manifest.place)
            problems.append(lacking(problem, target.name, {"prune.enabled": ("true",)}, ("or take that change of the schema back",)))
    if problems and not target.prune.enabled:
        raise PlanRefused(*problems)
    return found


def _lost(live: dict[str, Any], declared: dict[str, Any], api: Api, discovery: Discovery) -> tuple[set[str], str]:
    """Return the fields that instances hold and lose, and what is to be said of that; empty: none does."""
    kind = GroupKind(str(at(live, "spec", "group")), str(at(live, "spec", "names", "kind")))
    fields, holders = set[str](), set[str]()
    names = [str(at(each, "name")) for each in items_at(live, "spec", "versions") if at(each, "served") is True]
    served = discovery.preferred(kind) or _by_definition(kind, names, live)
    converts = at(live, "spec", "conversion", "strategy") == "Webhook"
    schemas: dict[Resource, list[Any]] = {}
    for version, schema in crd_schema.narrowed(live, declared):
        shown = version if converts else crd_schema.stored(live)  # what is stored shows most, where nothing converts it
        if served:
            schemas.setdefault(replace(served, version=shown) if shown in names else served, []).append(schema)
    for resource, narrower in schemas.items():
        try:
            for instance in (each for page in pages(api, Listing(resource)) for each in page):
                if more := set[str]().union(*(crd_schema.lost(schema, instance) for schema in narrower)):
                    holders.add(str(instance["metadata"]["uid"]))
                    fields |= more
        except AccessDenied as denied:
            return {"*"}, f"its new schema lacks fields, which instances lose, and these can't be listed: {denied.problems[0].message}"
    named = ", ".join(sorted(fields)[:_NAMED]) + (f" and {len(fields) - _NAMED} more" if len(fields) > _NAMED else "")
    return fields, f"{many(len(holders), 'instance')} would lose what its new schema lacks: {named}" if fields else ""


def _by_definition(kind: GroupKind, names: Sequence[str], live: dict[str, Any]) -> Resource | None:
    """Return how an established CRD is served where discovery, which is seconds behind, doesn't say so yet: it may have instances."""
    if not names or not any(
        at(each, "type") == "Established" and at(each, "status") == "True" for each in items_at(live, "status", "conditions")
    ):
        return None
    return Resource(kind.group, names[0], kind.kind, str(at(live, "spec", "names", "plural")), at(live, "spec", "scope") == "Namespaced")
