"""What one run's plan is made for: the desired set, what of its rollout is due, whether anything may be pruned; and its notes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from handler.engine.health.target_health import MISSING, HealthLook, judged_absent
from handler.engine.planner import expired_jobs
from handler.engine.planner.canaries import Canaries
from handler.engine.planner.desired import Inputs, Prepared, changed_engine, held_renderer
from handler.engine.planner.due import all_due, is_due, left_out, token, under_way
from handler.engine.planner.exclusive_look import ExclusiveRequest, beside_exclusive
from handler.engine.planner.planner import Planned, PlanRequest
from handler.engine.planner.siblings import SiblingQuestions
from handler.engine.run import revision, stuck_pods
from handler.engine.run.context import RunContext
from handler.engine.run.former_record import ignored
from handler.model.advice import advice
from handler.model.errors import AnnealError, Basis
from handler.model.hidden_fields import WHOLE
from handler.model.names import Identity
from handler.model.numbers import many
from handler.model.plan import Action, Change, Plan
from handler.model.rollout import APPLIED
from handler.plan.admission import Desired
from handler.state.record import State
from handler.state.record_format import seconds_of


def plan(run: RunContext, inputs: Inputs) -> Planned:
    """Return the plan of a run. Raises what `Planner.plan` does; ServerPinned: what is rendered names another API server."""
    rendered = inputs.prepared.rendered
    if rendered.server:
        run.deps.planner.api.connection.refuse_other_server(rendered.server, "config.kubernixos.server")
    ask = _ask(run, inputs)
    try:
        planned = run.deps.planner.plan(ask)
    except AnnealError as error:
        asked = ask.handover or SiblingQuestions(run.deps.target)
        error.basis = Basis(inputs.prepared.reads.paths, siblings=asked.seen, strangers=asked.strangers)
        raise
    due = {change.identity for change in planned.plan.writes if not change.removes}
    missing = dict.fromkeys(due & judged_absent(run.state, run.deps.health), MISSING)
    planned = replace(planned, health={**missing, **planned.health})
    run.round.looked = HealthLook(planned.health)
    once = {one for one in _once_hidden(inputs.prepared, run.state) if one in planned.desired and planned.desired[one].mode in APPLIED}
    planned = replace(planned, plan=_written(planned.plan, once))
    stuck, said = stuck_pods.named(run, planned, steps=bool(inputs.prepared.rollout))
    notes = (*planned.plan.notes, *remarks(run, inputs, planned.plan), *_outside(planned.plan, run.job.target), *said)
    return replace(planned, plan=replace(planned.plan, notes=notes, stuck=stuck))


def _ask(run: RunContext, inputs: Inputs) -> PlanRequest:
    prepared, state = inputs.prepared, run.state
    prunes = run.deps.target.prunes_undeclared and run.job.prune
    rolling = is_due(state, prepared.digest, force=run.force)
    due = all_due(prepared.planned_hooks, prepared.planned_rollout, state, prepared.digest, force=run.force)
    return PlanRequest(
        inputs.commit.sha,
        inputs.reads,
        inputs.settings,
        _hiding(prepared, state),
        state.kinds,
        state.namespaces,
        prune=prunes and not run.recovery,
        keep_reason=_KEPT if prunes else "prune is off",
        planned_hooks=prepared.planned_hooks,
        due=due,
        notes=(
            *prepared.notes,
            *changed_engine(state.reads_paths, prepared.reads),
            *(each.advised for each in run.revision.promotion.awaited),
            *_not_taken_over(run),
        ),
        renderer=prepared.rendered.renderer,
        unstable=prepared.rendered.unstable,
        renamed=frozenset(() if run.force else _renamed(run, inputs)),
        guarded=held_renderer(run.deps.target, state.render.renderer, prepared.rendered.renderer),
        under_way=token(under_way(state, prepared.digest, force=run.force)) if rolling else "",
        canaries=Canaries.of(prepared.rollout, due=rolling, gradual=is_gradual(run, prepared.digest)),
        planned_rollout=prepared.planned_rollout,
        shown=run.job.dry_run,
        gaps=run.deps.gaps,
        handover=SiblingQuestions(
            run.deps.target,
            run.deps.siblings,
            run.revision.commit,
            run.revision.head,
            lambda: revision.newest(run, math.inf),
            frozenset(orphan.uid for orphan in state.orphans if not (orphan.sibling or orphan.unmarked)),
            run.deps.clock,
        ),
        exclusive=_exclusive(run),
        ran=expired_jobs.known(state, due, prepared.planned_rollout, prepared.digest),
    )


def _not_taken_over(run: RunContext) -> Iterator[str]:
    with contextlib.suppress(AnnealError):  # what can't be read is said nothing of
        if said := ignored(run.deps.places, run.state):
            yield said


def _exclusive(run: RunContext) -> ExclusiveRequest:
    """Return what a plan asks of exclusive namespaces: drift runs and dry runs look, and what a person forces, approves or may approve."""
    target, job, state = run.deps.target, run.job, run.state
    person = job.approve or state.approval or run.force or job.dry_run or job.drift
    rests = run.is_recorded() and (run.drift or state.held)  # what lives beside it doesn't hold a new commit up
    beside = beside_exclusive(target) if run.deps.gaps is not None and run.deps.gaps.beside is not None else ()
    looks = bool(beside) or (bool(target.exclusive) and job.prune and bool(person or rests))
    now = run.deps.planner.api.server_time() if looks else 0.0  # one clock for all workers: a grace isn't cut by one that is fast
    reasons = (
        "prune is off" if not target.prunes_undeclared else "",
        f"drift is {target.drift}" if target.drift != "correct" else "",
        _KEPT if run.recovery else "",
    )
    kept = next(filter(None, reasons), "")
    born = run.stored.body["metadata"].get("creationTimestamp") if run.stored.body else ""
    return ExclusiveRequest(
        state.orphans, now, looks, kept, not job.dry_run, beside, run.deps.preparer.own, seconds_of(born) if born else 0.0
    )


def _renamed(run: RunContext, inputs: Inputs) -> tuple[Identity, ...]:
    """Return the objects that are new only because they were rendered once more; after a change of git or settings none is."""
    same = run.is_recorded() and run.state.reads == inputs.reads
    return inputs.prepared.rendered.renamed if same else ()


def is_gradual(run: RunContext, digest: str) -> bool:
    """Whether what a run brings goes by canary: not what is pinned, nor what is recorded. `digest`: of the rendered set."""
    pin = revision.pin_left(run)
    return digest != run.state.digest and not (pin and pin.commit == run.revision.commit)


_KEPT = "the state was missing; the next run prunes"  # why a recovery keeps what it would prune otherwise


def remarks(run: RunContext, inputs: Inputs, plan: Plan) -> tuple[str, ...]:
    """Return notes of a plan, or of what it came to."""
    prepared, target = inputs.prepared, run.job.target
    omitted = left_out(run.state, prepared.planned_hooks, prepared.planned_rollout, target)
    return tuple(filter(None, (omitted, _kept(plan, target), _terminating(plan))))


def _kept(plan: Plan, target: str) -> str:
    kept = sum(change.reason == _KEPT for change in plan.prunes)
    if not kept:
        return ""
    seen = f"{many(kept, 'object')} that git doesn't declare {'is' if kept == 1 else 'are'} kept, for the state was missing"
    return advice("{text}: anneal plan {} shows after this run what the next one prunes", seen, target)


def _once_hidden(prepared: Prepared, state: State) -> frozenset[Identity]:
    """Return the objects that may hold a value that isn't in git until what git declares of them now is deployed."""
    return frozenset(state.health.closed) - prepared.closed


def _hiding(prepared: Prepared, state: State) -> tuple[tuple[Desired, ...], ...]:
    """Return the stages; what lives of some objects is hidden."""
    once = _once_hidden(prepared, state)

    def hidden(item: Desired) -> Desired:
        is_hidden = item.identity in once
        return replace(item, manifest=replace(item.manifest, hidden=(*item.manifest.hidden, WHOLE))) if is_hidden else item

    return tuple(tuple(map(hidden, stage)) for stage in prepared.stages) if once else prepared.stages


def _written(plan: Plan, once: Collection[Identity]) -> Plan:
    """Return a plan that writes some objects without a word of their fields, also where they live so: that would tell what they hold."""

    def written(change: Change) -> Change:
        is_asked = change.identity in once and change.action in (Action.UNCHANGED, Action.UPDATE) and change.uid
        return replace(change, action=Action.UPDATE, fields=(), undeclared=()) if is_asked else change

    return replace(plan, stages=tuple(tuple(map(written, stage)) for stage in plan.stages)) if once else plan


def _outside(plan: Plan, target: str) -> Iterator[str]:
    """Say how what lives in namespaces that left the whitelist comes to an end."""
    for namespace in sorted({identity.namespace for identity in plan.outside} - {""}):
        count = sum(identity.namespace == namespace for identity in plan.outside)
        seen = f"{many(count, 'object')} in namespace {namespace}, which left the whitelist, stay{'s' if count == 1 else ''} as before"
        yield advice(
            "{text}: `anneal retire {} --namespace {} --prune --dry-run` shows what that deletes; --keep lets go", seen, target, namespace
        )


def _terminating(plan: Plan) -> str:
    return "; ".join(
        f"{change.identity} is being deleted{_held(change.finalizers)}: it is created again once it is gone"
        for change in plan.changes
        if change.terminating and change.manifest
    )


def _held(finalizers: Sequence[str]) -> str:
    return f" (finalizers: {', '.join(finalizers)})" if finalizers else ""
