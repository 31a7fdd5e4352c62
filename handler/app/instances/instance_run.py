"""A run of an instance: the ordinary one, or its end. Nothing runs while its object is being deleted, or its template is suspended."""

from __future__ import annotations

import threading
from collections.abc import Callable

from handler.app.instances.instance_end import end
from handler.app.instances.registry import Instances
from handler.app.target_runner import TargetRunner
from handler.config.instance_target import InstanceTarget
from handler.model.advice import advice
from handler.model.errors import NoInstance, Suspended
from handler.model.event import RESOURCE, Job
from handler.model.names import run_id
from handler.model.result import Outcome, Result
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
