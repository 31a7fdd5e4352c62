"""A refused commit isn't tried again by the clock: a tick or a push finds the refusal in the record, and that it still holds.

Law: a person's request tries at once. A refusal of what is in git alone waits for git, settings, or a person. What admission refused is
tried again by ticks, ever more rarely; so is, late, what was looked at after the verdict. An open attempt's own commit isn't refused.
"""

from __future__ import annotations

import hashlib
import logging

from handler import __version__
from handler.config.settings import Target
from handler.engine.run.context import RunContext
from handler.engine.run.refusal_facts import RefusalBasis, RefusalFacts
from handler.model.backoff import Backoff
from handler.model.errors import AnnealError, AuthorError, QuotaExceeded, RefNotFound, RenderFailed
from handler.model.event import NAMED, Job
from handler.model.manifest import canonical
from handler.model.to_json import plain
from handler.model.tree import ReadSet
from handler.plan.admission import Desired
from handler.state.record import Refusal
from handler.state.record_format import seconds_of, stamp

_LOG = logging.getLogger("anneal.run")
OPEN = Backoff(60.0, 1800.0)
"""Until a tick tries again what no fact decides."""
LATE = 3600.0
"""Seconds until a tick tries again what was looked at after the verdict: it may have changed in between."""
PATHS = 100
"""Paths of a read set that are kept; one with more is known by its commit alone."""


def of(run: RunContext, error: AnnealError) -> Refusal | None:
    """Return what keeps a failed commit from being tried again by ticks; None: nothing does."""
    attempt, goes_on = run.state.attempt, isinstance(error, RefNotFound) or not isinstance(error, AuthorError | QuotaExceeded)
    if goes_on or run.round.opened or not run.revision.commit or (attempt and attempt.commit == run.revision.commit):
        return None
    try:
        named = _named(run, error)
    except AnnealError:
        return None
    paths = () if error.basis.siblings or len(error.basis.reads) > PATHS else error.basis.reads
    wait = OPEN.after(run.state.status.failures + 1) if named.open else LATE if named.late else 0.0
    return Refusal(
        run.revision.commit,
        inputs_of(run.deps.target),
        ReadSet(paths).digest() if paths else "",
        tuple(path for path, _ in paths),
        named.facts,
        stamp(run.deps.clock() + wait) if wait else "",
    )


def stands(run: RunContext) -> bool:
    """Whether the revision is refused still, as the record says. Raises ClusterUnavailable: what that names can't be looked at."""
    refusal = run.state.status.refusal
    if refusal is None or run.force or is_asked(run.job) or refusal.inputs != inputs_of(run.deps.target):
        return False
    if refusal.again and seconds_of(refusal.again) <= run.deps.clock():
        return False
    if refusal.commit != run.revision.commit and not _reads_the_same(run, refusal):
        return False
    changed = _facts(run).changed(refusal.facts)
    if changed:
        _LOG.info("a refusal is over", extra={"fields": {"target": run.job.target, "commit": run.revision.commit, "changed": str(changed)}})
    return changed is None


def is_asked(job: Job) -> bool:
    """Whether a person or a pipeline asked for a run by name."""
    return bool(job.acts or job.named) or job.trigger in NAMED


def inputs_of(target: Target) -> str:
    """Return the digest of all that is configured of a target, and of our version: whatever of it changes may lift a refusal."""
    return hashlib.sha256(canonical([__version__, plain(target)])).hexdigest()


def awaits(refusal: Refusal, target: str) -> str:
    """Say what a refused commit waits for."""
    named = ", ".join(dict.fromkeys(str(fact) for fact in refusal.facts))
    until = f", a change of {named}" if named else ""
    again = f", or {refusal.again}" if refusal.again else ""
    return f"it waits for a new commit, other settings{until}{again}; at once: anneal apply {target}"


def _named(run: RunContext, error: AnnealError) -> RefusalBasis:
    """Return what a failure names: problems of a plan by the objects that they are about, what can't be prepared by its kinds alone."""
    declared = _declared(run)
    named = _facts(run).named(error.problems if declared else (), declared, error.basis)
    return RefusalBasis(named.facts, named.open or isinstance(error, RenderFailed))


def _declared(run: RunContext) -> dict[str, Desired]:
    prepared = run.deps.preparer.last
    if prepared is None or prepared.commit.sha != run.revision.commit:
        return {}
    items = [*(item for stage in prepared.stages for item in stage), *prepared.hooked.items.values()]
    return {str(item.identity): item for item in items}


def _reads_the_same(run: RunContext, refusal: Refusal) -> bool:
    if not refusal.reads:
        return False
    tree = run.deps.preparer.tree(run.revision.commit)
    run.round.commit = run.titled(tree.commit)
    return ReadSet(tuple((path, "") for path in refusal.paths)).on(tree).digest() == refusal.reads


def _facts(run: RunContext) -> RefusalFacts:
    planner = run.deps.planner
    return RefusalFacts(planner.api, planner.discovery, run.deps.siblings)
