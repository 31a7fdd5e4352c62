"""The plan of what a pull request would bring, made without a write and without a look at anything but the target's own members.

    LIST the members (by our label) -> each beside what git declares of it now, and after the merge (`member_preview`)
    what is declared for the first time   created, whatever lives under its name, a member's or a stranger's
    members that aren't declared          deleted, unless they or the target's settings say otherwise
    what a due hook takes the place of    deleted, as by a run
    what a due step acts on               deleted or made anew as by a run; what no member is, by its name alone (`preview_rollout`)

Law: what a reader of the pull request may not see isn't looked at: no object without our marks, no content of a Namespace. What a Secret
holds, or depends on values that aren't in git, is neither compared nor judged, and nothing that is returned says whether it equals live.
An owner that git names is asked for by its name, and must have the uid that git names.
Of what the server refuses only what speaks of what git declares is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from handler.cluster.api import Api
from handler.cluster.parallel import parallel
from handler.cluster.write import DryRunner
from handler.config.settings import Prune
from handler.engine.health.target_health import HealthOfPlan
from handler.engine.planner.expired_jobs import has_run
from handler.engine.planner.hook_dry_run import deletions
from handler.engine.planner.join_errors import JoinedErrors
from handler.engine.planner.losses import PlanParts, named_owners, refuse_owners, with_losses
from handler.engine.planner.member_preview import MemberPreview, refused_alone
from handler.engine.planner.planner import Planner, PlanRequest
from handler.engine.planner.preview_rollout import StepPreviewer, held_for
from handler.engine.planner.rollout_actions import RolloutActions
from handler.engine.planner.server_answers import NO_DRY_RUN, is_unasked
from handler.model import quotation
from handler.model.advice import advice
from handler.model.errors import AccessDenied, AnnealError, ApiRefused, Problem, QuotaExceeded
from handler.model.names import Identity
from handler.model.plan import Action, Change, Hold, Plan
from handler.model.rollout import APPLIED, Mode
from handler.plan import crd_schema, guards
from handler.plan.admission import CRD, Desired
from handler.plan.compare import SECRET, Comparison
from handler.plan.ignore import Ignoring
from handler.plan.judge import Judge, skipped
from handler.plan.missing_settings import joined
from handler.plan.prune import PruneFacts, judge
from handler.plan.quoted_refusal import quoted
from handler.plan.retention import unopened
from handler.render.variables.variables import PLACEHOLDERS

_NOT_YET = 404  # says nothing of the object: its Namespace or CRD comes with it
Finding = Change | Problem


@dataclass(frozen=True, slots=True)
class Preview:
    """A plan, and what the server refuses of it. `judged`: the server was asked; `apart`: of so many objects it wasn't.

    `guarded`: as of the `PlanRequest`.
    """

    plan: Plan
    problems: tuple[Problem, ...] = ()
    judged: bool = False
    apart: int = 0
    guarded: Mapping[tuple[str, str, str], str] = field(default_factory=dict)

    def held(self, prune: Prune) -> Preview:
        """Return it with what a person would have to approve. `prune`: the target's settings."""
        members = self.plan.live_members - sum(change.is_left for change in self.plan.prunes)
        hold = held_for(self.plan.changes, members, lambda changes: self._hold(changes, members, prune))
        return replace(self, plan=replace(self.plan, hold=hold))

    def _hold(self, changes: Sequence[Change], members: int, prune: Prune) -> Hold | None:
        plan = replace(self.plan, stages=(tuple(changes),), prunes=(), relabelled=())
        return guards.hold_for(plan, members, prune, "", "", self.guarded)


@dataclass
class Previewer:
    """Previews one target. `server`: dry-runs by an identity that may; None: no server judges.

    `now`: what git declares before the merge; `declared`: that, or what it did when it was deployed; `deployed`: `now` was applied last.
    `unnamed`: objects whose very names depend on values that aren't in git. `guessed`: such values may decide what is declared, so that a
    member of which git says nothing may be theirs.
    """

    planner: Planner
    server: Api | None = None
    unnamed: frozenset[Identity] = frozenset()
    declared: Collection[Identity] = ()
    guessed: bool = False
    now: Mapping[Identity, Desired] = field(default_factory=dict)
    deployed: bool = False
    _unjudged: set[Identity] = field(default_factory=set, init=False)
    _commit: str = field(default="", init=False)

    def preview(self, ask: PlanRequest) -> Preview:
        """Make the plan. Raises PlanRefused: the render declares nothing; ClusterUnavailable, AccessDenied: members can't be listed."""
        target, self._commit = self.planner.target, ask.commit
        comparison = self.planner.compare(self._before(ask), HealthOfPlan(ask.desired, 0.0, self.planner.custom))
        comparison.declare(ask.desired)
        declared = len(comparison.desired) + len(ask.planned_rollout.doomed)
        guards.refuse_empty(target.name, declared, comparison.members, target.prune, instance=False)
        found = self._decided(ask, comparison)
        changes = {item.identity: item for item in found if isinstance(item, Change) and item.identity not in self.unnamed}
        acting = RolloutActions.of(ask.planned_rollout, ask.due, self._judge, comparison)
        steps = StepPreviewer(self.planner, acting, self._is_unsure, self.guessed).steps(changes)
        changes = steps.over(changes)
        hooks = self._by_hooks(ask, comparison)
        parts = PlanParts(changes, steps.deleted, steps.without(self._prunes(ask, comparison)), (), hooks)
        mistakes = JoinedErrors()
        parts = mistakes.of(partial(self._with_losses, parts, comparison)) or parts
        mistakes.of(partial(self._refuse_owners, parts, comparison))
        if mistakes.denied:
            raise mistakes.denied[0]
        stages = [tuple(parts.declared[item.identity] for item in stage if item.identity in parts.declared) for stage in ask.stages]
        due, renderer = parts.due(ask.due), ask.renderer
        plan = Plan(target.name, ask.commit, acting.staged(stages, parts.steps), parts.prunes, due=due, renderer=renderer)
        plan = replace(plan, notes=ask.notes, live_members=comparison.members)
        refused = joined(guards.lost_though_off(plan, target, comparison.desired))
        problems = (*(item for item in found if isinstance(item, Problem)), *steps.problems, *mistakes.problems, *refused)
        apart = sum(self._is_apart(identity) for identity in comparison.desired) + len(self._unjudged) if self.server else 0
        guarded = {**ask.guarded, **unopened(plan.changes, target), **self._narrowed(plan)}
        return Preview(plan, problems, self.server is not None, apart, guarded).held(target.prune)

    def _by_hooks(self, ask: PlanRequest, comparison: Comparison) -> dict[Identity, Change]:
        """Return what due hooks delete, of members whose names say nothing of values that aren't in git."""
        live = {each: one for each, one in comparison.hooks.items() if each not in self.unnamed and not self._is_unsure(each)}
        return deletions(self.planner.ours, live, ask.planned_hooks, ask.due, ask.under_way)

    def _with_losses(self, parts: PlanParts, comparison: Comparison) -> PlanParts:
        """Return the changes with the members that go with their owners; nothing where values that aren't in git may decide what lives."""
        mine = [each for each in comparison.dependants.values() if each.is_member and not self.guessed]
        return with_losses(parts, comparison, mine)

    def _refuse_owners(self, parts: PlanParts, comparison: Comparison) -> None:
        """Raise PlanRefused of the owners that git names and that can't be any."""
        if not self.guessed:
            check, desired = self.planner.prune_judge, comparison.desired.values()
            refuse_owners(check, desired, parts, named_owners(check, desired))

    def _narrowed(self, plan: Plan) -> dict[guards.Key, str]:
        """Return why a person may have to approve CRDs whose schema lacks fields of the one before; what instances hold isn't looked at."""
        found = dict[guards.Key, str]()
        for change in plan.changes:
            before = self.now.get(change.identity)
            if change.identity.group_kind != CRD or change.action is not Action.UPDATE or before is None or change.manifest is None:
                continue
            if any(crd_schema.narrowed(before.manifest.body(), change.manifest.body())):
                seen = f"{change.identity}: its new schema lacks fields; the run waits for a person if instances hold any of them"
                found["lose", str(change.identity), change.uid] = seen
        return found

    @property
    def _judge(self) -> Judge:
        return Judge(self.planner.target, self.planner.ours)

    def _is_unsure(self, identity: Identity) -> bool:
        """Whether a member that git doesn't declare now may be one that it declares by a value which isn't in git."""
        like = {(each.group_kind, each.namespace) for each in self.unnamed}
        return identity not in self.declared and (self.guessed or (identity.group_kind, identity.namespace) in like)

    def _before(self, ask: PlanRequest) -> PlanRequest:
        """Return what members are compared with: what git declares of them now."""

        def compared(item: Desired) -> Desired:
            before = self.now.get(item.identity)
            return replace(before, mode=item.mode) if before and {before.mode, item.mode} <= APPLIED else item

        touched = {each for each, item in ask.desired.items() if each in self.now and _differs(self.now[each], item)}
        stages, acted_on = tuple(tuple(map(compared, stage)) for stage in ask.stages), {due.identity for due in ask.due}
        return replace(ask, stages=stages, whole=frozenset(touched | acted_on))

    def _decided(self, ask: PlanRequest, comparison: Comparison) -> list[Finding]:
        judge_one, ignoring = self._judge, self.planner.ignoring(ask)
        found, tasks = list[Finding](), list[Callable[[], Finding]]()
        for identity, item in comparison.desired.items():
            same, live = comparison.same.get(identity), comparison.undecided.get(identity) or comparison.bodies.get(identity)
            left = comparison.left.get(identity, {} if item.mode is Mode.LEAVE else None)
            if left is not None:
                found.append(judge_one.kept(item, left) or skipped(item, left, item.reason))
            elif (same or live) and (item.mode is Mode.KEEP or (live is None and identity in self.now)):
                found.append(Change(Action.UNCHANGED, identity, *(same or ("", "")), manifest=item.manifest))
            elif same or live:
                tasks.append(partial(self._member, comparison, ignoring, item, live))
            elif has_run(item, ask.ran):
                found.append(Change(Action.UNCHANGED, identity, manifest=item.manifest))
            elif identity not in comparison.hooks:
                tasks.append(partial(self._created, judge_one, item))
        for answer in parallel(tasks):
            if isinstance(answer, AnnealError):
                raise answer
            found.append(answer)
        return found

    def _member(self, comparison: Comparison, ignoring: Ignoring, item: Desired, live: dict[str, Any] | None) -> Finding:
        """Return what becomes of a member. `live`: None: it lives as it is declared for the first time."""
        identity, before, judge_one = item.identity, self.now.get(item.identity), self._judge
        is_hidden = self.guessed or identity.group_kind == SECRET
        unchanged = Change(Action.UNCHANGED, identity, manifest=item.manifest)
        if before is None or live is None:
            return unchanged if is_hidden else self._created(judge_one, item, lives=True)
        server = None if self._is_apart(identity) else self.server
        says, unsure = (self._refused, self._is_unjudged), PLACEHOLDERS[1:] if self.guessed else ()
        member = MemberPreview(judge_one, comparison, ignoring, before, item, live, *says, server, self.deployed, unsure)
        return (member.by_git() or unchanged) if is_hidden else member.finding()

    def _created(self, judge_one: Judge, item: Desired, *, lives: bool = False) -> Finding:
        """Return the change of what git declares for the first time, whatever lives. `lives`: a member does."""
        asks = self.server is not None and not self._is_apart(item.identity) and self.planner.is_served(item.resource)
        error = refused_alone(DryRunner(self.server), item, lives=lives) if self.server is not None and asks else None
        is_new = isinstance(error, ApiRefused) and error.status == _NOT_YET
        if error and not is_new and not self._is_unjudged(error, item.identity):
            return self._refused(error, item)
        return judge_one.absent(item)

    def _refused(self, error: ApiRefused | AccessDenied, item: Desired, way_out: str = "") -> Problem:
        """Return a refusal as all may read it, with the way to the rest for those who may read the cluster. `way_out`: of all of it."""
        found = quoted(error, item.manifest)
        more = () if found.is_whole else ("and for more than that",) if found.words else ("the server refuses it",)
        rest = "" if found.is_whole else advice("anneal plan {} --commit {}", self.planner.target.name, self._commit)
        return Problem(str(item.identity), "; ".join((*map(quotation.quoted, found.words), *more)), item.manifest.place, way_out or rest)

    def _is_apart(self, identity: Identity) -> bool:
        """Whether the server isn't asked about an object: its name or its values aren't to be seen."""
        return identity in self.unnamed or identity.group_kind == SECRET

    def _is_unjudged(self, error: ApiRefused | AccessDenied, identity: Identity) -> bool:
        """Whether the server didn't judge an object, for the identity lacks a right, or a webhook doesn't support dry run."""
        if isinstance(error, QuotaExceeded) or not (is_unasked(error) or NO_DRY_RUN in error.words):
            return False
        self._unjudged.add(identity)
        return True

    def _prunes(self, ask: PlanRequest, comparison: Comparison) -> tuple[Change, ...]:
        """Judge members that aren't declared by what they and the settings say; what they hold isn't asked."""
        target, facts = self.planner.target, PruneFacts()
        declared_uids = comparison.declared_uids
        candidates = [(each, live) for each, live in comparison.candidates.items() if live["metadata"]["uid"] not in declared_uids]
        found = [judge(live, target, comparison.desired, facts) for each, live in candidates if not self._is_unsure(each)]
        if not ask.prune:
            found = [replace(change, action=Action.SKIP, reason="prune is off") for change in found]
        return tuple(sorted(found, key=lambda change: (change.action is not Action.PRUNE, change.identity)))


def _differs(before: Desired, item: Desired) -> bool:
    return (before.manifest.raw, before.mode) != (item.manifest.raw, item.mode)


def without_handed_over(preview: Preview, declared: Mapping[Identity, str], prune: Prune) -> Preview:
    """Return a preview in which what another target declares from now on isn't deleted. `declared`: by which target.

    `prune`: the settings of its own.
    """

    def left(change: Change) -> Change:
        taker = declared.get(change.identity, "") if change.action is Action.PRUNE else ""
        return replace(change, action=Action.SKIP, reason=f"target {taker} declares it", sibling=taker) if taker else change

    return replace(preview, plan=replace(preview.plan, prunes=tuple(map(left, preview.plan.prunes)))).held(prune)
