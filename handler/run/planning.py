"""The planning half of a run: asks the cluster what the pure rules of `handler.plan` need, and composes their Plan.

Law: nothing here can write. It is handed readers and a dry-runner; the writer isn't in hand until the Lease is.
One label-selected LIST per kind, a dry-run only for what the LIST can't decide, all mistakes at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.live import members, metadata
from handler.cluster.parallel import together
from handler.config.settings import Target
from handler.model.errors import AccessDenied, ApiRefused, ClusterUnavailable, PlanRefused, Problem
from handler.model.names import PART_OF, GroupKind, Identity, identity_of
from handler.model.plan import Action, Change, Plan
from handler.model.resource import Resource
from handler.plan import guards
from handler.plan.admit import NAMESPACE, Desired
from handler.plan.adopt import is_member
from handler.plan.compare import Comparison, Seen, fingerprint
from handler.plan.ignore import Ignoring
from handler.plan.prune import Facts, custom_kinds, judge, leaving, prune_stages, questions
from handler.run.deciding import Decision

_SYSTEM_CONTENT = {
    ("", "ConfigMap", "kube-root-ca.crt"),
    ("", "ServiceAccount", "default"),
}
_SYSTEM_KINDS = frozenset({"Event", "EndpointSlice", "Endpoints", "Lease", "ControllerRevision", "PodMetrics"})
"""What every Namespace holds without anybody having put it there."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What one plan is made for. `recorded`: the kinds the state lists; `prune`: whether candidates may go at all."""

    commit: str
    reads: str
    settings: str
    stages: tuple[tuple[Desired, ...], ...]
    recorded: frozenset[GroupKind] = frozenset()
    prune: bool = True
    keep_reason: str = ""

    @property
    def desired(self) -> dict[Identity, Desired]:
        """Every declared object."""
        return {item.identity: item for stage in self.stages for item in stage}


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and what was seen on the way.

    `present`: kinds with a live member; `bodies`: what prune orders by; `scopes`: where was looked, None: everywhere.
    """

    plan: Plan
    present: frozenset[GroupKind]
    bodies: dict[Identity, dict[str, Any]]
    desired: dict[Identity, Desired]
    scopes: tuple[str, ...] | None = None


@dataclass(slots=True)
class Planner:
    """Plans one target on one cluster; it outlives runs, for the sake of its cached verdicts."""

    target: Target
    applyset: str
    api: Api
    discovery: Discovery
    verdicts: dict[Seen, bytes] = field(default_factory=dict)
    scopes: tuple[str, ...] | None = None

    def plan(self, ask: Ask) -> Planned:
        """Make the plan of what is asked.

        Raises:
            PlanRefused: a guard or the server refuses objects; all of them are in it.
            ClusterUnavailable: a LIST that matters failed; nothing may be pruned on doubt.

        """
        comparison = self._compare(ask)
        guards.refuse_empty(self.target.name, len(comparison.desired), comparison.members, self.target.prune)
        changes, notes = self._decide(ask, comparison)
        prunes = self._prunes(ask, comparison)
        bodies = comparison.candidates
        ordered = self._ordered(prunes, bodies)
        plan = Plan(
            target=self.target.name,
            commit=ask.commit,
            stages=tuple(tuple(changes[item.identity] for item in stage) for stage in ask.stages),
            prunes=ordered,
            notes=tuple(notes),
            live_members=comparison.members,
            outside=tuple(change.identity for change in prunes if change.reason.startswith("outside:")),
        )
        hold = guards.hold_for(plan.changes, comparison.members, self.target.prune, ask.reads, ask.settings)
        present = frozenset(i.group_kind for i in (*comparison.same, *comparison.undecided, *bodies))
        return Planned(replace(plan, hold=hold), present, bodies, comparison.desired, self.scopes)

    def _compare(self, ask: Ask) -> Comparison:
        """LIST our members and sort them: everywhere at once, or per allowed namespace where RBAC is namespaced."""
        try:
            return self._listed_into(self._fresh(ask), ask)
        except AccessDenied:
            if self.scopes is not None or "*" in self.target.namespaces:
                raise
        self.scopes = self.target.namespaces
        return self._listed_into(self._fresh(ask), ask)

    def _fresh(self, ask: Ask) -> Comparison:
        bodies = [item.manifest.body() for item in ask.desired.values() if item.identity.kind == "HorizontalPodAutoscaler"]
        ignoring = Ignoring.of(self.target.ignore, bodies)
        return Comparison(self.target.name, self.applyset, ask.desired, ignoring, self.verdicts)

    def _listed_into(self, comparison: Comparison, ask: Ask) -> Comparison:
        vanished: set[Resource] = set()
        comparison.see(members(self.api, self._listed(ask), f"{PART_OF}={self.applyset}", self.scopes, vanished=vanished))
        return comparison

    def _listed(self, ask: Ask) -> list[Resource]:
        """Return how to LIST every desired and recorded kind; a recorded kind that is no longer served has no members."""
        by_kind = {item.resource.group_kind: item.resource for item in ask.desired.values() if self.is_served(item.resource)}
        for kind in sorted(ask.recorded - by_kind.keys()):
            resource = self.discovery.preferred(kind)
            if resource is not None:
                by_kind[kind] = resource
            elif kind.group in self.discovery.stale:
                seen = f"the API group {kind.group} doesn't answer, so its members can't be listed"
                raise ClusterUnavailable.of(str(kind), seen, fix=f"repair the APIService of {kind.group}; nothing is pruned on doubt")
        return list(by_kind.values())

    def is_served(self, resource: Resource) -> bool:
        """Whether the server knows a kind already (not one that this run's CRD brings)."""
        return self.discovery.find(resource.api_version, resource.kind) is not None

    # --- changes
    def _decide(self, ask: Ask, comparison: Comparison) -> tuple[dict[Identity, Change], list[str]]:
        """Return every declared object's change, and notes."""
        changes = {
            identity: Change(Action.UNCHANGED, identity, uid, version, manifest=comparison.desired[identity].manifest)
            for identity, (uid, version) in comparison.same.items()
        }
        notes: list[str] = []
        found = Decision(self.target, self.applyset, self.api, self.is_served, ask.stages, comparison, notes).decide()
        problems = [item for item in found if isinstance(item, Problem)]
        if problems:
            raise PlanRefused(*problems)
        decided = [item for item in found if isinstance(item, Change)]
        changes.update((change.identity, change) for change in decided)
        self._remember(decided, comparison)
        return changes, notes

    def _remember(self, decided: Iterable[Change], comparison: Comparison) -> None:
        """Keep what the server called the same, so that the next run needn't ask; forget what isn't live any more."""
        fresh = {(c.uid, c.resource_version): fingerprint(comparison.desired[c.identity]) for c in decided if c.action is Action.UNCHANGED}
        live = {seen: self.verdicts[seen] for seen in comparison.same.values() if seen in self.verdicts}
        self.verdicts.clear()
        self.verdicts.update(live | fresh)

    # --- prunes
    def _prunes(self, ask: Ask, comparison: Comparison) -> list[Change]:
        """Judge every candidate; nothing goes when prune is off."""
        facts = self._facts(comparison) if ask.prune else Facts()
        declared_uids = {live["metadata"]["uid"] for live in (*comparison.undecided.values(), *comparison.unowned.values())}
        declared_uids |= {uid for uid, _ in comparison.same.values()}
        candidates = [live for live in comparison.candidates.values() if live["metadata"]["uid"] not in declared_uids]
        found = [judge(live, self.target, comparison.desired, facts) for live in candidates]
        if ask.prune:
            return found
        return [replace(change, action=Action.SKIP, reason=ask.keep_reason or "prune is off") for change in found]

    def _facts(self, comparison: Comparison) -> Facts:
        """Ask what Namespaces hold and how many instances CRDs have, beyond what goes with them."""
        namespaces, crds = questions(comparison.candidates.values(), self.target)
        return self.facts(namespaces, crds, leaving(comparison.candidates.values(), self.target))

    def facts(self, namespaces: Sequence[str], crds: Sequence[Identity], gone: frozenset[str]) -> Facts:
        """Return the Facts of these Namespaces and CRDs, not counting the uids that are gone before them."""
        return Facts(
            {name: self._content(name, gone) for name in namespaces},
            {crd.name: self._instances(crd, gone) for crd in crds},
        )

    def judged_again(self, live: dict[str, Any], desired: Collection[Identity]) -> Change:
        """Judge one candidate from what is live right before its deletion: its content is asked anew, its marks too."""
        if not is_member(live, identity_of(live), self.target.name, self.applyset):
            change = judge(live, self.target, desired, Facts())
            return replace(change, action=Action.SKIP, reason="is no longer ours")
        namespaces, crds = questions([live], self.target)
        return judge(live, self.target, desired, self.facts(namespaces, crds, frozenset()))

    def _content(self, namespace: str, gone: frozenset[str]) -> list[str]:
        """Return what would go with a Namespace, ours or not, beyond the system's own and what goes with its owner."""
        kinds = [kind for kind in self.discovery.listable() if kind.namespaced and kind.kind not in _SYSTEM_KINDS]
        lists = together([partial(self._names, kind, namespace, gone) for kind in kinds])
        return [name for names in lists for name in names]

    def _names(self, kind: Resource, namespace: str, gone: frozenset[str]) -> list[str]:
        return [str(identity_of(live)) for live in self._metadata(kind, namespace) if _is_content(live, gone)]

    def _metadata(self, kind: Resource, namespace: str) -> list[dict[str, Any]]:
        """LIST a kind; one that has vanished with its CRD since discovery was read holds nothing."""
        try:
            return list(metadata(self.api, kind, namespace))
        except ApiRefused as error:
            if error.status != 404:
                raise
            return []

    def _instances(self, crd: Identity, gone: frozenset[str]) -> int:
        """Count the instances of a CRD that would be deleted with it."""
        served = custom_kinds(self.discovery.listable(), crd)
        found = [live for kind in served for live in self._metadata(kind, "")]
        return sum(live["metadata"]["uid"] not in gone for live in found)

    def _ordered(self, found: Sequence[Change], bodies: dict[Identity, dict[str, Any]]) -> tuple[Change, ...]:
        """Return prunes in the order they go, then what is kept."""
        going = [change for change in found if change.action is Action.PRUNE]
        kept = [change for change in found if change.action is not Action.PRUNE]
        return (*(change for stage in prune_stages(going, bodies) for change in stage), *kept)


def _is_content(live: dict[str, Any], gone: frozenset[str]) -> bool:
    """Whether an object of a Namespace counts: what a check keeps, even one of ours, would be deleted with it."""
    identity, meta = identity_of(live), live["metadata"]
    system = (identity.group, identity.kind, identity.name) in _SYSTEM_CONTENT
    return not (system or meta.get("ownerReferences") or meta["uid"] in gone)


def namespaces_of(desired: Iterable[Identity]) -> frozenset[str]:
    """Return the namespaces a set lives in, declared Namespaces included: the ApplySet's additional-namespaces."""
    items = list(desired)
    named = {item.namespace for item in items if item.namespace}
    return frozenset(named | {item.name for item in items if item.group_kind == NAMESPACE})
