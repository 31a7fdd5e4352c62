"""A run of an instance: the ordinary one, or its end. Nothing runs while its object is being deleted, or its template is suspended.

At the end of an instance, whose object is gone, its members are pruned, or let go, and its record goes last.

Law: what ends is looked for once more under its Lease; an object of its name that is there by then lets it live. What a person has paused,
and what is in a namespace that its template may no longer touch, doesn't end.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from handler.app.instances.registry import Instances, trigger_of
from handler.app.instances.vanished import Kept, look_for, retiring
from handler.app.retiring import certain_claims
from handler.app.target_runner import TargetRunner
from handler.config.instance_target import InstanceTarget, instance_target
from handler.config.settings import Prune, Target
from handler.engine.planner.members import living
from handler.engine.planner.planner import Planner
from handler.engine.retire import Retire
from handler.engine.run.errors import RequestRefused
from handler.model.advice import advice
from handler.model.errors import AnnealError, Busy, NoInstance, Suspended
from handler.model.event import RESOURCE, Job
from handler.model.instance import Instance, template_of
from handler.model.names import run_id
from handler.model.numbers import many
from handler.model.plan import tally
from handler.model.result import Outcome, Result
from handler.plan.admission import allows
from handler.plan.inventory import TargetMarks
from handler.state.record import RecordedInstance, RunStatus, State
from handler.state.record_format import stamp
from handler.state.suspension import suspension

_OF_THEMSELVES = ("tick", "drift", RESOURCE)


def run(handler: TargetRunner, instances: Instances, job: Job, stop: threading.Event, reconcile: Callable[[Job], Result]) -> Result:
    """Run an instance; `reconcile` is the ordinary run of it. Raises AnnealError: there is no such instance, or it can't be known."""
    known = instances.leaving.get(job.target)
    if known is not None and not job.dry_run:
        return end(handler, instances, job, known, stop)
    try:
        target = instances.find(job.target)
    except NoInstance:
        if job.trigger not in _OF_THEMSELVES:
            raise
        seen = "its object went before this run began; its template ends it"  # no failure: no person has asked for it by name
        return Result(job.target, Outcome.UNCHANGED, trigger=job.cause, message=seen, run=job.run or run_id(job.target))
    if target.instance.terminating:
        seen = f"{target.instance.identity} is being deleted: nothing is applied for it any more"
        return Result(job.target, Outcome.UNCHANGED, trigger=job.cause, message=seen, run=job.run or run_id(job.target))
    _raise_if_suspended(handler, target)
    return reconcile(job)


def _raise_if_suspended(handler: TargetRunner, target: InstanceTarget) -> None:
    template = handler.target(target.template)
    state = handler.brief_store(template).read().state
    if suspension(template, state, handler.now()):
        seen = f"its template {template.name} is suspended"
        raise Suspended.of(f"target {target.name}", seen, fix=advice("anneal resume {}", template.name))


_AGAIN = 30.0  # seconds until an end that failed is tried again


def may_not_end(template: Target, state: State, known: RecordedInstance, now: float) -> Kept | None:
    """Say why an instance stays though its object may be gone; None: nothing keeps it. `state`: its record; `now`: Unix seconds."""
    space = known.identity.namespace
    if space and not allows(template, space):
        return Kept(f"target {template.name} may touch nothing in namespace {space} any more", retiring(state.target))
    return Kept("it is suspended", advice("to let it end: anneal resume {}", state.target)) if state.suspension(now) else None


def planned_end(handler: TargetRunner, template: Target, name: str, known: RecordedInstance) -> Result:
    """Return what the end of an instance would delete and let go; what keeps it from that is its Result, too."""
    result = Result(name, Outcome.PLANNED, message=f"{known.identity} is gone")
    try:
        shown = _retire(handler, template, _gone(handler, template, known), known).look()
    except AnnealError as error:
        return replace(result, outcome=Outcome.FAILED, message=str(error), problems=error.problems, who=error.who, code=error.code)
    changes = (*shown.going, *shown.staying)
    return replace(result, plan=replace(shown.planned.plan, prunes=changes), counts=tally(changes))


def end(handler: TargetRunner, instances: Instances, job: Job, known: RecordedInstance, stop: threading.Event) -> Result:
    """End an instance. Whatever goes wrong is its Result. `known`: what its record said when its object was looked for."""
    since, name = time.monotonic(), job.run or run_id(job.target)
    template = handler.target(template_of(job.target))
    target = _gone(handler, template, known)
    result = Result(job.target, Outcome.APPLIED, trigger=job.cause, run=name)
    if not job.prune:
        return replace(result, outcome=Outcome.UNCHANGED, message=f"{known.identity} is gone, and this run prunes nothing")
    try:
        retire = _retire(handler, template, target, known)
        retired = retire.carry_out(retire.look(), stop)
    except Suspended as error:
        instances.leaving.pop(job.target, None)
        return replace(result, outcome=Outcome.SUSPENDED, message=str(error), problems=error.problems, who=error.who, code=error.code)
    except Busy as error:
        result = replace(result, outcome=Outcome.BUSY, message=str(error), problems=error.problems, code=error.code)
        return replace(result, next_try=handler.now() + _AGAIN)
    except RequestRefused as error:
        instances.ended(job.target) if _is_over(handler, target) else instances.leaving.pop(job.target, None)
        return replace(result, outcome=Outcome.UNCHANGED, message=str(error.problems[0].message))
    except AnnealError as error:
        _note(handler, target, error)
        result = replace(result, outcome=Outcome.FAILED, message=str(error), problems=error.problems, who=error.who, code=error.code)
        return replace(result, next_try=handler.now() + _AGAIN)
    if retired.ended:
        instances.ended(job.target)
    seen = f"{known.identity} is gone: {many(len(retired.done), 'object')} of it deleted or let go"
    found = replace(result, message=seen, written=retired.done, counts=tally(retired.done), duration=round(time.monotonic() - since, 3))
    return found if retired.ended else replace(found, outcome=Outcome.PRUNING, next_try=handler.now() + _AGAIN)


def _gone(handler: TargetRunner, template: Target, known: RecordedInstance) -> InstanceTarget:
    """Return an instance whose object is gone, as a target; not by rights in a namespace that is gone if it may be nowhere else."""
    target = instance_target(template, Instance(known.identity, known.uid, {}, definition=known.definition))
    space = known.identity.namespace
    alone = space and not trigger_of(template).across_namespaces
    if alone and not living(handler.api(template, impersonated=False), [space]):
        return replace(target, impersonate=template.impersonate)
    return target


def _note(handler: TargetRunner, target: Target, error: AnnealError) -> None:
    """Leave in the record why an instance can't end."""
    status = RunStatus("failed", stamp(handler.now()), message=str(error), code=error.code, who=error.who)
    with contextlib.suppress(AnnealError):  # the end's own failure is the one to report
        handler.store(target).update(lambda now: replace(now, status=status))


def _is_over(handler: TargetRunner, target: Target) -> bool:
    return handler.store(target).read().state is None


def _retire(handler: TargetRunner, template: Target, target: InstanceTarget, known: RecordedInstance) -> Retire:
    settings = handler.settings
    main = trigger_of(template).main

    def still_gone(state: State) -> None:
        recorded = state.instance
        of_template, now = handler.brief_store(template).read().state, handler.now()
        paused = Kept(
            f"{template.name} is suspended, and all its instances with it", advice("to let them end: anneal resume {}", template.name)
        )
        if kept := paused if suspension(template, of_template, now) else may_not_end(template, state, recorded or known, now):
            raise Suspended.of(f"target {target.name}", f"doesn't end: {kept.why}", fix=kept.way_out)
        absence = look_for(handler, template, main, recorded or known)
        if recorded is None or recorded.identity != known.identity or absence.state != "gone":
            kept = absence.kept if absence.state != "gone" else Kept(f"its record is of {recorded.identity if recorded else 'no object'}")
            fix = kept.way_out or advice("anneal status {}", template.name)
            raise RequestRefused.of(f"target {target.name}", f"doesn't end: {kept.why}", fix=fix)

    def planner(state: State) -> Planner:
        api = handler.api(target)
        rules = Prune(kinds=target.prune.kinds, allow_empty=True)
        alone = replace(target, namespaces=living(api, state.namespaces), cluster_scoped=("*",), prune=rules)
        marks = TargetMarks.of(target.name, settings.state_namespace)
        return Planner(alone, marks.applyset, api, handler.discovery(target))

    return Retire(
        target.name,
        settings.installation,
        handler.store(target),
        handler.lock(target),
        planner,
        handler.objects(target).cluster_uid,
        lambda _: False,
        settings.lease_duration,
        prune=template.prune.enabled,
        claims=partial(certain_claims, handler, settings, target),
        ends=still_gone,
    )
