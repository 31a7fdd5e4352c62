"""The planning half of a run: asks the cluster what the pure rules of `handler.plan` need, and composes their Plan.

Law: nothing here can write. One label-selected LIST per kind, a dry-run only for what the LIST can't decide, all mistakes at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.live import members, probe
from handler.config.settings import Target
from handler.engine.health.custom_health import CustomHealth, no_expressions
from handler.engine.health.target_health import HealthOfPlan
from handler.engine.planner import losses
from handler.engine.planner.canaries import Canaries, foresee
from handler.engine.planner.dry_run import DryRun
from handler.engine.planner.exclusive_look import DeclaredObjects, ExclusiveFindings, ExclusiveLook, ExclusiveRequest
from handler.engine.planner.expired_jobs import RecordedJobs, given
from handler.engine.planner.hook_dry_run import deletions, tried
from handler.engine.planner.join_errors import JoinedErrors
from handler.engine.planner.losses import PlanParts
from handler.engine.planner.mark_dry_run import sorted_out
from handler.engine.planner.members import living
from handler.engine.planner.narrowed_crds import losing_fields
from handler.engine.planner.prune_check import PruneCheck
from handler.engine.planner.rollout_actions import RolloutActions
from handler.engine.planner.siblings import SiblingQuestions
from handler.model.errors import AccessDenied, ClusterUnavailable, PlanRefused, Problem
from handler.model.health import Health
from handler.model.names import GroupKind, Identity, Resource
from handler.model.plan import Action, Change, Due, Plan
from handler.model.render import FILES, UnstableFields
from handler.model.rollout import Mode
from handler.plan import former_marks, guards, retention
from handler.plan.admission import Desired
from handler.plan.adoption import Adoptions
from handler.plan.compare import Comparison, Seen, fingerprint
from handler.plan.dependants import dependant_of, endpoints_of, owners_of
from handler.plan.exclusive import held_strangers
from handler.plan.gap import FieldGaps
from handler.plan.hooks import PlannedHooks
from handler.plan.ignore import SCALERS, Ignoring
from handler.plan.inventory import Membership, TargetMarks
from handler.plan.kubernixos_leftovers import Leftovers
from handler.plan.missing_settings import joined
from handler.plan.prune import PruneFacts, is_outside, judge, leaving, left_to, needs_asking, protection, prune_stages
from handler.plan.retention import unopened
from handler.plan.rollout import PlannedRollout
from handler.plan.write_order import WriteOrder


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What one plan is made for.

    `recorded`, `namespaces`: the kinds and namespaces the state lists; `prune`: whether candidates may go; `due`: hooks and steps to carry
    out; `renderer`, `unstable`: see `Rendered`; `renamed`: objects that nothing
    but another render names otherwise; `guarded`: what a person must approve beside deletions, each with its reason; `under_way`:
    `due.token` of the rollout that goes on; `shown`: the plan is only read; `handover`: None: there are no siblings; `gaps`, `whole`: as in
    `Comparison`.
    """

    commit: str
    reads: str
    settings: str
    stages: tuple[tuple[Desired, ...], ...]
    recorded: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    prune: bool = True
    keep_reason: str = ""
    planned_hooks: PlannedHooks = field(default_factory=PlannedHooks)
    due: tuple[Due, ...] = ()
    notes: tuple[str, ...] = ()
    renderer: str = FILES
    unstable: Mapping[Identity, UnstableFields] = field(default_factory=dict)
    renamed: frozenset[Identity] = frozenset()
    guarded: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    under_way: str = ""
    canaries: Canaries = field(default_factory=Canaries)
    planned_rollout: PlannedRollout = field(default_factory=PlannedRollout)
    shown: bool = False
    gaps: FieldGaps | None = None
    whole: frozenset[Identity] = frozenset()
    handover: SiblingQuestions | None = None
    exclusive: ExclusiveRequest = field(default_factory=ExclusiveRequest)
    ran: RecordedJobs = field(default_factory=RecordedJobs)

    @property
    def desired(self) -> dict[Identity, Desired]:
        """Every declared object, hooks included."""
        return {item.identity: item for stage in self.stages for item in stage} | dict(self.planned_hooks.items)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and what was seen on the way: `present` kinds, `bodies` that prune orders by, `health` of the live members.

    `decision` judges an object again; `scopes`: where was looked, None: everywhere; `given`: see `expired_jobs`; `leftovers`: by which rule
    they were looked for, None: they weren't. `exclusive`: what was found in exclusive namespaces; `refused`: see `mark_dry_run`.
    """

    plan: Plan
    present: frozenset[GroupKind]
    bodies: dict[Identity, dict[str, Any]]
    desired: dict[Identity, Desired]
    decision: DryRun
    scopes: tuple[str, ...] | None = None
    given: frozenset[Identity] = frozenset()
    health: Mapping[Identity, Health] = field(default_factory=dict)
    leftovers: Leftovers | None = None
    exclusive: ExclusiveFindings = field(default_factory=ExclusiveFindings)
    refused: Mapping[Identity, Problem] = field(default_factory=dict)


@dataclass(slots=True)
class Planner:
    """Plans one target on one cluster; it outlives runs, for its cached verdicts. `scopes`: where it looks, None: everywhere.

    `former`: the marks that members may still carry; None: no takeover is under way. `adoptions`: see `Comparison`. `lives_on`: this
    process remembers what it saw (`ExclusiveLook`).
    """

    target: Target
    applyset: str
    api: Api
    discovery: Discovery
    verdicts: dict[Seen, bytes] = field(default_factory=dict)
    scopes: tuple[str, ...] | None = None
    custom: CustomHealth = field(default_factory=no_expressions)
    former: TargetMarks | None = None
    adoptions: Adoptions | None = None
    lives_on: bool = False
    exclusive: ExclusiveLook = field(init=False)

    def __post_init__(self) -> None:
        self.exclusive = ExclusiveLook(self.target, self.api, self.discovery, {} if self.lives_on else None)

    @property
    def ours(self) -> Membership:
        """By which marks objects are the target's."""
        return Membership(TargetMarks(self.target.name, self.applyset), self.former)

    @property
    def prune_judge(self) -> PruneCheck:
        """What judges deletions."""
        return PruneCheck(self.target, self.ours, self.api, self.discovery)

    def plan(self, ask: PlanRequest) -> Planned:
        """Make the plan. Raises PlanRefused: all that a guard or the server refuses; ClusterUnavailable: a LIST that matters failed."""
        passing = HealthOfPlan(ask.desired, self.api.server_time(), self.custom)
        comparison = self.compare(ask, passing)
        looked, unread = self._look_outside(comparison, ask)
        declared = len(comparison.desired) + len(ask.planned_rollout.doomed)
        guards.refuse_empty(self.target.name, declared, comparison.members, self.target.prune, instance=bool(self.target.instance))
        handover = ask.handover or SiblingQuestions(self.target)
        coming = WriteOrder.of(ask.stages, ask.planned_hooks, ask.planned_rollout, ask.due)
        decision = DryRun(self.target, self.ours, self.api, self.is_served, coming, comparison, handover, [], ask.ran)
        mistakes = JoinedErrors()
        changes = self._decide(decision, ask, mistakes)
        acting = RolloutActions.of(ask.planned_rollout, ask.due, decision.judge, comparison)
        check = self.prune_judge
        going = mistakes.of(lambda: acting.deleted(self._probe, check, handover, prunes=ask.prune)) or {}
        foreseen = mistakes.of(lambda: foresee(ask.canaries, changes, decision.missing, self.api, self.target)) or []
        changes.update(mistakes.of(lambda: acting.recreated(self._probe, changes)) or {})
        mistakes.raise_any()
        self._remember([change for identity, change in changes.items() if identity not in comparison.same], comparison)
        prunes = tuple(change for change in self._prunes(ask, comparison, handover, check) if change.identity not in going)
        found = self._found(ask, comparison, handover)
        hooks = deletions(self.ours, comparison.hooks, ask.planned_hooks, ask.due, ask.under_way)
        parts = self._with_losses(PlanParts(changes, going, prunes, found.changes, hooks), check, comparison, found)
        changes, prunes = dict(parts.declared), decision.missing.dead.put_first(parts.prunes, ask.commit)
        bodies = {**comparison.candidates, **found.bodies}
        ordered = self._ordered([*prunes, *parts.exclusive], bodies)
        for identity, fields in (comparison.undeclared or {}).items():
            if fields and identity in changes:
                changes[identity] = replace(changes[identity], undeclared=fields)
        staying = former_marks.kept(self.ours, (change.identity for change in prunes if not change.removes), comparison)
        relabelled, refused = sorted_out(self.api, self.discovery, [each for each in staying if not is_outside(each.identity, self.target)])
        refused |= {each.identity: former_marks.outside(each.identity) for each in staying if is_outside(each.identity, self.target)}
        keeping = [f"{one} keeps its former marks, for the new ones are refused: {each.message}" for one, each in refused.items()]
        also = (*decision.missing.dead.notes, *foreseen, *found.notes, *keeping, *parts.notes)
        stages = [tuple(changes[item.identity] for item in stage if item.identity in changes) for stage in ask.stages]
        plan = Plan(
            target=self.target.name,
            commit=ask.commit,
            stages=acting.staged(stages, parts.steps),
            prunes=ordered,
            notes=(*ask.notes, *unread, *decision.notes, *sorted(comparison.notes.values()), *also),
            live_members=comparison.members,
            outside=tuple(change.identity for change in prunes if is_outside(change.identity, self.target)),
            due=parts.due(ask.due),
            renderer=ask.renderer,
            relabelled=relabelled,
        )
        plan = self._guarded(plan, ask, comparison)
        present = frozenset(identity.group_kind for identity in (*comparison.living, *comparison.hooks))
        left, health = given(ask.ran, comparison.desired, handover), passing.verdicts()
        return Planned(plan, present, bodies, comparison.desired, decision, looked, left, health, exclusive=found, refused=refused)

    def _with_losses(self, parts: PlanParts, check: PruneCheck, comparison: Comparison, found: ExclusiveFindings) -> PlanParts:
        """Return the changes with all that goes along. Raises PlanRefused."""
        owners = losses.named_owners(check, comparison.desired.values())
        listed = [*comparison.dependants.values(), *check.inside(parts.declared.values()), *check.owned.values(), *found.dependants]
        listed += filter(None, (dependant_of(live, kept=protection(live, self.target)) for live in owners.values()))
        uids = {change.identity: change.uid for change in (*parts.declared.values(), *parts.prunes) if change.uid}
        listed += [each for change in parts.all for each in endpoints_of(change, uids, comparison.desired)]
        parts = losses.with_claims(parts, check, comparison, listed)
        losses.refuse_owners(check, comparison.desired.values(), parts, owners)
        return parts

    def _guarded(self, plan: Plan, ask: PlanRequest, comparison: Comparison) -> Plan:
        """Return the plan with why it must wait. Raises PlanRefused: something goes although prune is off."""
        if refused := guards.lost_though_off(plan, self.target, ask.desired):
            raise PlanRefused(*joined(refused))
        members = comparison.members - sum(change.of_step or change.is_left for change in plan.prunes)
        strangers = held_strangers(plan.changes, comparison.living, self.target.prune)
        lost = {**unopened(plan.changes, self.target), **losing_fields(comparison, plan.changes, self.api, self.discovery, self.target)}
        guarded = {**ask.guarded, **guards.names_made_anew(plan.changes, ask.renamed), **strangers, **lost}
        return replace(plan, hold=guards.hold_for(plan, members, self.target.prune, ask.reads, ask.settings, guarded))

    def compare(self, ask: PlanRequest, passing: HealthOfPlan) -> Comparison:
        """LIST our members and sort them: everywhere at once, or per allowed namespace where RBAC is namespaced."""
        try:
            return self._listed_into(self._fresh(ask), ask, passing)
        except AccessDenied:
            if self.scopes is not None or "*" in self.target.namespaces:
                raise
        self.scopes = self.target.namespaces
        return self._listed_into(self._fresh(ask), ask, passing)

    def ignoring(self, ask: PlanRequest) -> Ignoring:
        """Return what is left to others."""
        bodies = [item.manifest.body() for item in ask.desired.values() if item.identity.group_kind in SCALERS]
        return Ignoring.of(self.target.ignore, bodies, ask.unstable)

    def _fresh(self, ask: PlanRequest) -> Comparison:
        if self.adoptions is not None:
            self.adoptions.found.clear()
        return Comparison(
            self.ours,
            ask.desired,
            self.ignoring(ask),
            self.verdicts,
            undeclared={} if ask.shown else None,
            adopts=self.target.adopts,
            gaps=ask.gaps,
            adoptions=self.adoptions,
            keeps=lambda live: protection(live, self.target) or retention.kept_by_claims(live),
            whole=ask.whole,
        )

    def _listed_into(self, comparison: Comparison, ask: PlanRequest, passing: HealthOfPlan) -> Comparison:
        """LIST every kind as it is served now: discovery is read anew for a recorded one it doesn't know or whose version vanished."""
        vanished: set[Resource] = set()
        if any(self.discovery.preferred(kind) is None for kind in ask.recorded):
            self.discovery.refresh()
        listed = self._listed(ask)
        comparison.see(passing.judged(members(self.api, listed, self.ours.selector, self.scopes, vanished=vanished)), listed)
        if vanished:
            self.discovery.refresh()
            kinds = {resource.group_kind for resource in vanished}
            again = [resource for resource in self._listed(ask) if resource.group_kind in kinds]
            comparison.see(passing.judged(members(self.api, again, self.ours.selector, self.scopes)), again)
        return comparison

    def _look_outside(self, comparison: Comparison, ask: PlanRequest) -> tuple[tuple[str, ...] | None, list[str]]:
        """LIST recorded namespaces that left the whitelist; return where was looked (None: everywhere), and a note of each unread one."""
        if self.scopes is None:
            return None, []
        looked, notes = list(self.scopes), []
        listed = [resource for resource in self._listed(ask) if resource.namespaced]
        for namespace in sorted(ask.namespaces - set(looked)):
            try:
                comparison.see(members(self.api, listed, self.ours.selector, (namespace,), vanished=set()), listed)
            except AccessDenied:
                if not living(self.api, [namespace]):
                    looked.append(namespace)
                    continue
                notes.append(f"Namespace/{namespace} left the whitelist and may not be read: what the target has there stays, unseen")
            else:
                looked.append(namespace)
        return tuple(looked), notes

    def _listed(self, ask: PlanRequest) -> list[Resource]:
        written = {(item.resource.api_version, item.resource.kind): item.resource for item in ask.desired.values()}
        found = [resource for resource in written.values() if self.is_served(resource)]
        for kind in sorted(ask.recorded - {resource.group_kind for resource in found}):
            resource = self.discovery.preferred(kind)
            if resource is not None:
                found.append(resource)
            elif kind.group in self.discovery.stale:
                seen = f"the API group {kind.group} doesn't answer, so its members can't be listed"
                raise ClusterUnavailable.of(str(kind), seen, fix=f"repair the APIService of {kind.group}; nothing is pruned on doubt")
        return found

    def _probe(self, wanted: Sequence[tuple[Resource, str, str]]) -> dict[Identity, dict[str, Any]]:
        return probe(self.api, [one for one in wanted if self.is_served(one[0])])

    def is_served(self, resource: Resource) -> bool:
        """Whether the server knows a kind already (not one that this run's CRD brings)."""
        return self.discovery.find(resource.api_version, resource.kind) is not None

    # --- changes
    def _decide(self, decision: DryRun, ask: PlanRequest, mistakes: JoinedErrors) -> dict[Identity, Change]:
        comparison = decision.comparison
        changes = {
            identity: Change(Action.UNCHANGED, identity, uid, version, manifest=comparison.desired[identity].manifest)
            for identity, (uid, version) in comparison.same.items()
        }
        hooks = [due.identity for due in ask.due if due.identity in ask.planned_hooks.items]
        found = [*decision.decide(), *tried(decision, ask.planned_hooks, hooks, ask.under_way)]
        mistakes.problems += [item for item in found if isinstance(item, Problem)]
        mistakes.denied += [item for item in found if isinstance(item, AccessDenied)]
        changes.update((item.identity, item) for item in found if isinstance(item, Change))
        return changes

    def _remember(self, decided: Iterable[Change], comparison: Comparison) -> None:
        """Keep what the server called the same, so that the next run needn't ask; forget what isn't live any more."""
        said = [c for c in decided if c.action is Action.UNCHANGED and c.uid and comparison.desired[c.identity].mode is not Mode.KEEP]
        fresh = {(c.uid, c.resource_version): fingerprint(comparison.desired[c.identity]) for c in said}
        live = {seen: self.verdicts[seen] for seen in comparison.same.values() if seen in self.verdicts}
        self.verdicts.clear()
        self.verdicts.update(live | fresh)

    # --- prunes
    def _prunes(self, ask: PlanRequest, comparison: Comparison, handover: SiblingQuestions, check: PruneCheck) -> list[Change]:
        """Judge every candidate; nothing goes when prune is off, nor what is left to a sibling, with all that holds it."""
        declared_uids = comparison.declared_uids
        candidates = {identity: live for identity, live in comparison.candidates.items() if live["metadata"]["uid"] not in declared_uids}
        mine = {*declared_uids, *(str(live["metadata"]["uid"]) for live in candidates.values())}
        asked = [one for one, live in candidates.items() if needs_asking(live, self.target, handover.known) or mine & {*owners_of(live)}]
        claims = handover.claims(asked) if ask.prune else {}
        for one in claims.keys() & comparison.dependants.keys():  # what owns it can't go either
            comparison.dependants[one] = replace(comparison.dependants[one], kept=claims[one][1])
        going = [live for identity, live in comparison.candidates.items() if identity not in claims]
        facts = check.facts(going, leaving(going, self.target)) if ask.prune else PruneFacts()
        found = [
            left_to(live, *claims[identity]) if identity in claims else judge(live, self.target, comparison.desired, facts)
            for identity, live in candidates.items()
        ]
        if not ask.prune:
            found = [replace(change, action=Action.SKIP, reason=ask.keep_reason or "prune is off", unread=False) for change in found]
        return [ask.canaries.kept(change, comparison.candidates[change.identity]) for change in found]

    def _found(self, ask: PlanRequest, comparison: Comparison, handover: SiblingQuestions) -> ExclusiveFindings:
        """Look at exclusive namespaces, once everything that git declares is known, with the uids of what lives of it."""
        if not (self.target.exclusive or ask.exclusive.beside):
            return ExclusiveFindings()
        declared = comparison.desired.keys() | ask.planned_rollout.doomed.keys() | ask.canaries.steps.keys()
        uids = {str(live["metadata"]["uid"]) for live in comparison.unowned.values()}
        manifests = tuple(item.manifest for item in ask.desired.values())
        found = self.exclusive.find(ask.exclusive, DeclaredObjects(declared, uids, manifests, comparison.owners), handover)
        if ask.gaps is not None and ask.gaps.beside is not None:
            ask.gaps.beside += found.beside
        return found

    def _ordered(self, found: Sequence[Change], bodies: dict[Identity, dict[str, Any]]) -> tuple[Change, ...]:
        going = [change for change in found if change.action is Action.PRUNE]
        kept = [change for change in found if change.action is not Action.PRUNE]
        return (*(change for stage in prune_stages(going, bodies) for change in stage), *kept)
