"""What a plan takes beside what it deletes itself: what owners, Namespaces and CRDs take along when they go. Writes nothing.

    changes of the declared, of steps, of prune, of exclusive namespaces  +  what was listed and has owners  -->  the same, with what goes

What policies delete, such as the claims of StatefulSets, is looked at by `retention_look`, what a narrower schema loses by `narrowed_crds`.

Law: nothing goes that the plan doesn't name. What may not go keeps what would take it; a change of git that would have to is refused. An
owner that git names must live: the garbage collector deletes within seconds what names one that doesn't.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from handler.cluster.live import probe
from handler.engine.planner.prune_check import PruneCheck
from handler.engine.planner.retention_look import claims_along, volumes_along
from handler.health.kinds.built_in import removes_itself
from handler.model.errors import PlanRefused, Problem
from handler.model.manifest import at, items_at
from handler.model.names import LASTING, Identity, Resource
from handler.model.plan import Action, Cause, Change, Due
from handler.model.rollout import Mode
from handler.plan.admission import Desired
from handler.plan.compare import Comparison
from handler.plan.dependants import Dependant, collected, may_own_more

_OWNED = b'"ownerReferences"'


@dataclass(frozen=True, slots=True)
class PlanParts:
    """All changes of a plan, by what makes them: git's declarations, steps that delete, prune, exclusive namespaces, hooks."""

    declared: Mapping[Identity, Change]
    steps: Mapping[Identity, Change]
    prunes: tuple[Change, ...]
    exclusive: tuple[Change, ...]
    hooks: Mapping[Identity, Change] = field(default_factory=dict)

    @property
    def all(self) -> tuple[Change, ...]:
        """Every change."""
        return (*self.declared.values(), *self.steps.values(), *self.prunes, *self.exclusive, *self.hooks.values())

    @property
    def writes(self) -> list[Change]:
        """Those that touch the cluster: nothing else makes anything go."""
        return [change for change in self.all if change.writes]

    @property
    def notes(self) -> tuple[str, ...]:
        """What can't be known of what goes along."""
        return may_own_more(self.all)

    def over(self, changes: Mapping[Identity, Change], kept: Mapping[Identity, str], unread: Collection[Identity] = ()) -> PlanParts:
        """Return them with other changes of some objects, and without the deletions of those that are kept, each for why.

        `unread`: of these only since what goes along can't be read.
        """
        if not changes and not kept:
            return self

        def one(change: Change) -> Change:
            change, identity = changes.get(change.identity, change), change.identity
            if identity not in kept:
                return change
            return replace(change, action=Action.SKIP, reason=kept[identity], until="", takes=(), unread=identity in unread)

        declared = {identity: changes.get(identity, change) for identity, change in self.declared.items()}
        steps = {identity: changes.get(identity, change) for identity, change in self.steps.items()}
        hooks = {identity: changes.get(identity, change) for identity, change in self.hooks.items()}
        return PlanParts(declared, steps, tuple(map(one, self.prunes)), tuple(map(one, self.exclusive)), hooks)

    def due(self, due: Iterable[Due]) -> tuple[Due, ...]:
        """Return due steps and hooks, each object that a hook takes with the first that does."""
        left = dict(self.hooks)
        return tuple(replace(each, gone=left.pop(each.identity).gone) if each.identity in left else each for each in due)


def with_claims(parts: PlanParts, check: PruneCheck, comparison: Comparison, listed: Iterable[Dependant]) -> PlanParts:
    """Return a plan's changes as `with_losses`, and with the claims and volumes that policies delete. Raises PlanRefused."""
    found = claims_along(parts.writes, check, comparison.desired)
    others = (each for each in (*listed, *found.listed) if each.cause is not Cause.OWNER or each.identity not in found.claims)
    parts = with_losses(parts.over(found.changes, {}), comparison, others, found.kept, found.unread)
    return parts.over(volumes_along(parts.writes, check, {**comparison.candidates, **found.claims}), {})


def with_losses(
    parts: PlanParts,
    comparison: Comparison,
    listed: Iterable[Dependant],
    kept: Mapping[Identity, str] = MappingProxyType({}),
    unread: Collection[Identity] = (),
) -> PlanParts:
    """Return a plan's changes with what goes along. `listed`: whatever was listed and may go with others; `kept`: what stays, with why.

    `unread`: see `PlanParts.over`.

    Raises PlanRefused: what is made anew, or a step deletes, would take what may not go.
    """

    def remade(identity: Identity) -> Change | None:
        item, change = comparison.desired.get(identity), parts.declared.get(identity)
        may = item is not None and item.mode in (Mode.APPLY, Mode.RECREATE, Mode.KEEP) and identity.group_kind not in LASTING
        return change if may and change is not None and change.lives and not change.marks_only else None

    found = collected([change for change in parts.writes if change.identity not in kept], listed, remade)
    kept, problems = {**kept, **found.kept}, []
    for identity, why in kept.items():
        change = parts.declared.get(identity) or parts.steps.get(identity) or parts.hooks.get(identity)
        if change is not None:
            place = change.manifest.place if change.manifest else ""
            seen = f"would be deleted ({change.reason}), but {why}" if change.removes else why
            problems.append(Problem(str(identity), seen, place, "take that change back"))
    if problems:
        raise PlanRefused(*problems)
    return parts.over(found.changes, kept, unread)


# --- owners that git names
def named_owners(check: PruneCheck, desired: Iterable[Desired]) -> dict[Identity, dict[str, Any]]:
    """Return the owners that git names and that live, ours or not."""
    named = ((resource, item, name) for item in _owned(desired) for resource, _, name, _ in _references(check, item) if resource and name)
    wanted = dict.fromkeys((resource, item.identity.namespace if resource.namespaced else "", name) for resource, item, name in named)
    return probe(check.api, list(wanted))


def refuse_owners(check: PruneCheck, desired: Iterable[Desired], parts: PlanParts, owners: Mapping[Identity, dict[str, Any]]) -> None:
    """Raise PlanRefused of every declared object with an owner that isn't there, can't be its owner, or goes by this plan.

    `owners`: see `named_owners`.
    """
    going = {gone.uid for change in parts.writes for gone in change.gone}
    problems = [problem for item in _owned(desired) for problem in _of(check, item, going, owners)]
    if problems:
        raise PlanRefused(*problems)


def _owned(desired: Iterable[Desired]) -> list[Desired]:
    return [item for item in desired if _OWNED in item.manifest.raw and item.mode is not Mode.LEAVE]


def _references(check: PruneCheck, item: Desired) -> list[tuple[Resource | None, str, str, str]]:
    """Return each owner that git names, once: how its kind is served, that, name, uid."""
    found = items_at(item.manifest.body(), "metadata", "ownerReferences")
    named = ((str(at(each, "apiVersion") or ""), *(str(at(each, key) or "") for key in ("kind", "name", "uid"))) for each in found)
    return [(check.discovery.find(version, kind), kind, name, uid) for version, kind, name, uid in dict.fromkeys(named)]


def _of(check: PruneCheck, item: Desired, going: set[str], live: Mapping[Identity, dict[str, Any]]) -> Iterable[Problem]:
    references, instance = items_at(item.manifest.body(), "metadata", "ownerReferences"), check.target.instance
    if instance is not None and instance.owns(references):
        return
    for resource, kind, name, uid in _references(check, item):
        seen = _wrong(resource, item, live, name, uid, going)
        if seen:
            fix = "remove metadata.ownerReferences; what belongs together goes together by prune"
            message = f"names the owner {kind} {name} (uid {uid}), which {seen}: the garbage collector would delete the object"
            yield Problem(str(item.identity), message, item.manifest.place, fix)


def _wrong(
    resource: Resource | None, item: Desired, owners: Mapping[Identity, dict[str, Any]], name: str, uid: str, going: set[str]
) -> str:
    """Return what keeps an owner from being one; empty: nothing."""
    namespace = item.identity.namespace
    if resource is None:
        return "is of a kind that the server doesn't serve"
    if resource.namespaced and not namespace:
        return "lives in a namespace, where nothing cluster-scoped can have its owner"
    live = owners.get(Identity(resource.group, resource.kind, namespace if resource.namespaced else "", name))
    if live is None or live["metadata"]["uid"] != uid:
        return f"isn't there{f' in namespace {namespace}' if resource.namespaced else ''}"
    if live["metadata"].get("deletionTimestamp"):
        return "is being deleted"
    if removes_itself(live) or any(at(each, "controller") is True for each in items_at(live, "metadata", "ownerReferences")):
        return "comes and goes: its controller deletes it"
    return "goes by this plan" if uid in going else ""
