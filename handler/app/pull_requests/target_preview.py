"""One target's part of the plan of a pull request: what the merge would change of it, as all readers of it may see.

    base and merge, both with placeholders     what git declares now, and would
    both once more, with other placeholders    where the target has values that aren't in git: what else may differ by those
    the preview of the merge                   live values only where git declares them openly now, and leaves them to no other

Law: no value that isn't in git reaches a render here, so nothing that a template does with it (reverse, split, `fail`) can show it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

from handler.app.pull_requests.merge_result import MergeResult, ShownCommit
from handler.app.target_runner import TargetRunner
from handler.config.settings import Target
from handler.engine.planner.desired import Prepared, Preparer, changed_engine, held_renderer
from handler.engine.planner.due import all_due
from handler.engine.planner.expired_jobs import known
from handler.engine.planner.planner import Planner, PlanRequest
from handler.engine.planner.preview import Preview, Previewer
from handler.model.errors import AnnealError, AuthorError, Problem
from handler.model.names import Identity
from handler.model.plan import Action, Change, Plan
from handler.model.tree import ReadSet, Tree
from handler.plan.admission import Desired
from handler.plan.compare import SECRET
from handler.plan.visible_fields import Pair, by_git, by_name, changed
from handler.state.record import State

_LOG = logging.getLogger("anneal.pull_request")
Declared = Mapping[Identity, Desired]
UNPLANNED = "can't be planned now; Anneal's log says why"


@dataclass(frozen=True, slots=True)
class TargetPreview:
    """What a pull request does to one target. `preview`: None: it can't be planned, for `problems`; `mine`: objects that it changes itself.

    `untouched`: nothing that the target reads changes. `declares`: what it would declare. `late`: what may end by itself, and keeps it
    from being planned now.
    """

    target: str
    preview: Preview | None = None
    problems: tuple[Problem, ...] = ()
    mine: frozenset[Identity] = frozenset()
    untouched: bool = False
    notes: tuple[str, ...] = ()
    declares: frozenset[Identity] = frozenset()
    late: AnnealError | None = None

    @property
    def plan(self) -> Plan | None:
        """The plan, if there is one."""
        return self.preview.plan if self.preview else None


@dataclass
class _Renders:
    """What git declares at two trees, by one set of placeholders. `is_base_known`: whether the first can be rendered.

    `instead`: the deployed commit, where the base can't be rendered and that is the first; empty: it is the base. `is_deployed`: what the
    first declares is what was applied last.
    """

    now: Declared
    then: Prepared
    is_base_known: bool = True
    instead: str = ""
    is_deployed: bool = False

    def of(self, identity: Identity) -> Pair:
        """Return what is declared of one object before and after."""
        now, then = self.now.get(identity), self.declared.get(identity)
        return now.manifest if now else None, then.manifest if then else None

    @cached_property
    def declared(self) -> Declared:
        return _declared(self.then)


def preview_target(handler: TargetRunner, target: Target, merge: MergeResult) -> TargetPreview:
    """Plan one target after the merge. Raises no AnnealError: mistakes, and what can't be done now, are in what is returned."""
    found = TargetPreview(target.name)
    try:
        store = handler.brief_store(target)
        state = store.read().state or store.blank("")
        if _is_untouched(handler, target, state, merge):
            return replace(found, untouched=True)
        renders = _rendered(handler, target, merge, state, 1)
        return _previewed(handler, target, merge, state, renders) if renders else replace(found, untouched=True)
    except AuthorError as error:
        return replace(found, problems=error.problems)
    except AnnealError as error:  # the operator's, in whose words there may be what only that one sees
        fields = {"target": target.name, "code": error.code, "why": str(error)}
        _LOG.warning("a target can't be planned", extra={"fields": fields})
        unplanned = Problem(f"target {target.name}", UNPLANNED)
        return replace(found, problems=(unplanned,), late=error if error.who == "nobody" else None)


def _is_untouched(handler: TargetRunner, target: Target, state: State, merge: MergeResult) -> bool:
    """Whether it is seen without a render that all it reads is the same before and after: the branch reads as what is deployed."""
    own = ReadSet(tuple((path, "") for path in (target.path, *filter(None, (target.rollout,)))))
    if own.on(merge.now) != own.on(merge.then):  # what the record says was read isn't believed of that
        return False
    paths = ReadSet(tuple((path, "") for path in state.reads_paths))
    if not state.reads_paths or state.settings != handler.digest(target) or paths.on(merge.now) != paths.on(merge.then):
        return False
    outside = handler.preparer(target, handler.discovery(target)).outside(state.render, merge.base)
    return paths.on(merge.now, outside.ask).digest() == state.reads


def _previewed(handler: TargetRunner, target: Target, merge: MergeResult, state: State, renders: _Renders) -> TargetPreview:
    others = _rendered(handler, target, merge, state, 2) if _has_other_values(target) else None
    unnamed = _unnamed(renders, others) if others else frozenset[Identity]()
    then = renders.then
    whole = handler.dependencies(target.name).planner
    planner = Planner(target, whole.applyset, handler.api(target), whole.discovery, verdicts=dict(whole.verdicts), custom=whole.custom)
    judged_by = target.pull_requests.identity if target.pull_requests else ""
    is_settled = state.settings == handler.digest(target)  # else values that aren't in git may live of what it was set to before
    guessed = _has_other_values(target) or not renders.is_base_known or not is_settled
    server = handler.api_as(target, judged_by) if judged_by and not guessed else None  # a refusal would tell what lives
    deployed = _deployed(handler, target, state, 1) if guessed and state.commit not in ("", merge.base, renders.instead) else None
    declared = renders.now.keys() | (_declared(deployed).keys() if isinstance(deployed, Prepared) else ())
    previewer = Previewer(planner, server, unnamed, declared, guessed, renders.now, renders.is_deployed)
    preview = previewer.preview(_ask(target, then, state))
    plan = preview.plan
    shown = partial(_shown, renders, others, guessed=guessed)
    plan = replace(
        plan,
        stages=tuple(tuple(map(shown, stage)) for stage in plan.stages),
        prunes=tuple(map(shown, plan.prunes)),
    )
    return TargetPreview(
        target.name,
        replace(preview, plan=plan),
        preview.problems,
        changed(*({identity: item.manifest for identity, item in each.items()} for each in (renders.now, renders.declared))),
        notes=_notes(target, renders, unnamed, guessed=guessed),
        declares=frozenset(renders.declared),
    )


def _rendered(handler: TargetRunner, target: Target, merge: MergeResult, state: State, number: int) -> _Renders | None:
    """Render both trees; None: all that is read is the same. Raises AuthorError: the merge's mistakes, that the base hasn't alike."""
    now, then = (_prepared(handler, target, tree, state, number) for tree in (merge.now, merge.then))
    if _reads(now) and _reads(now) == _reads(then):
        return None
    if isinstance(then, AuthorError):
        raise then
    instead = ""
    if isinstance(now, AuthorError):
        now, instead = _deployed(handler, target, state, number) or now, state.commit
    if isinstance(now, AuthorError):  # nothing is known of what it declares
        return _Renders({}, then, is_base_known=False)
    is_deployed = not instead and state.attempt is None and now.reads.digest() == state.reads
    return _Renders(_declared(now), then, instead=instead, is_deployed=is_deployed)


def _declared(made: Prepared) -> Declared:
    return {item.identity: item for stage in made.stages for item in stage}


def _deployed(handler: TargetRunner, target: Target, state: State, number: int) -> Prepared | AuthorError | None:
    """Render what is deployed; None: nothing is, or the branch has it no longer."""
    if not state.commit:
        return None
    try:
        if not handler.proves(target, state.commit):
            return None
        return _prepared(handler, target, handler.git_host(target).fetch(state.commit, target.path), state, number)
    except AuthorError:
        return None


def _prepared(handler: TargetRunner, target: Target, tree: Tree, state: State, number: int) -> Prepared | AuthorError:
    preparer: Preparer = handler.preview_preparer(target, ShownCommit(tree), number)
    try:
        return preparer.prepare(tree.commit.sha, state.render)
    except AuthorError as error:
        return error


def _reads(made: Prepared | AuthorError) -> tuple[tuple[str, str], ...]:
    """Return what a render has read, path by path; empty: a failed one doesn't say it."""
    return made.basis.reads if isinstance(made, AuthorError) else made.reads.paths


def _has_other_values(target: Target) -> bool:
    """Whether a target has values that aren't in git: they may be anything that lives, whatever placeholders say."""
    substitutes = target.post_build is not None and bool(target.post_build.substitute_from)
    return substitutes or target.decryption is not None or bool(target.renderer.values_from)


def _unnamed(one: _Renders, other: _Renders) -> frozenset[Identity]:
    """Return the objects whose names depend on values which aren't in git, before or after."""
    return frozenset(one.now.keys() ^ other.now.keys() | one.declared.keys() ^ other.declared.keys())


def _ask(target: Target, then: Prepared, state: State) -> PlanRequest:
    rendered = then.rendered
    due = all_due(then.planned_hooks, then.planned_rollout, state, then.digest, force=False)
    return PlanRequest(
        then.commit.sha,
        then.reads.digest(),
        state.settings,
        then.stages,
        state.kinds,
        state.namespaces,
        prune=target.prunes_undeclared,
        planned_hooks=then.planned_hooks,
        due=due,
        notes=(*then.notes, *changed_engine(state.reads_paths, then.reads)),
        renderer=rendered.renderer,
        unstable=rendered.unstable,
        planned_rollout=then.planned_rollout,
        guarded=held_renderer(target, state.render.renderer, rendered.renderer),
        ran=known(state, due, then.planned_rollout, then.digest),
    )


def _shown(renders: _Renders, others: _Renders | None, change: Change, *, guessed: bool) -> Change:
    """Return a change as it may be read. `guessed`: values that aren't in git may decide what lives."""
    now, then = renders.of(change.identity)
    if guessed and not renders.is_base_known:
        seen = by_name(change)
    elif guessed or (change.identity.group_kind == SECRET and change.action is Action.UNCHANGED):
        seen = by_git(change, now, then, others.of(change.identity) if others else None)
    else:
        seen = change
    return seen


def _notes(target: Target, renders: _Renders, unnamed: Collection[Identity], *, guessed: bool) -> tuple[str, ...]:
    """Say what of the target isn't compared; by what git and the settings say alone."""
    found = []
    if _has_other_values(target):
        found.append("placeholders stand for values that aren't in git")
    if guessed and renders.is_base_known:
        why = "such values may decide that" if _has_other_values(target) else "the target isn't deployed with its settings yet"
        found.append(f"what is changed is shown beside what git declares, not what lives: {why}")
    if unnamed:
        found.append("objects whose names depend on such values are left out")
    if target.verify is not None:
        found.append("signatures aren't checked before the merge")
    if renders.instead:
        found.append(f"the base can't be rendered: what is changed is shown against `{renders.instead[:12]}`, which is deployed")
    if not renders.is_base_known:
        found.append("what the base declares can't be rendered: what changes of the objects that live isn't known")
    return tuple(found)
