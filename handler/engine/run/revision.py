"""Which commit a run aims at, and the pin that it leaves.

    an explicit commit    a person's word; one that this target never ran, or that the branch doesn't lead to, needs force
    the pinned one        while the target's path, and all that it is made of beside, reads at the head as it did when the pin was set
    the recorded one      while the head is refused: a drift run holds it, and a run goes on with an attempt to repair it
    the head              else, as the git host names it, or other targets have proven it

Law: an older answer of the git host may show that nothing has moved, but leads to another commit only if it can't be older than the record.
A run that aims off the head leaves a pin; a head that is the pinned commit, or reads otherwise than when it was pinned, ends it.
A record is testimony: a commit that isn't the head is proven to be on the branch before anything of it is rendered (`prove`), whatever
names it: pin, history, attempt, another's record. Force vouches for one, and comes with a commit from a shell alone.
"""

from __future__ import annotations

import math
from dataclasses import replace

from handler.engine.run import refusals, transitions
from handler.engine.run.context import ChosenRevision, RunContext
from handler.engine.run.errors import NotPromoted, RequestRefused
from handler.model.advice import advice
from handler.model.errors import CommitUnproven, Problem
from handler.model.refs import Head
from handler.state.record import Pin
from handler.state.record_format import stamp


def choose(run: RunContext) -> None:
    """Aim at an explicit commit, the pinned one, else the head.

    The run has the value of each step before the next one asks the git host or the cluster: a failure there is that commit's. Raises
    RequestRefused: an explicit one never ran, CommitUnproven: the revision doesn't lead to it, both without force; ClusterUnavailable.
    """
    run.revision = _head(run)
    run.revision = replace(run.revision, commit=_aimed(run))
    if run.job.commit:
        _vouch(run)
    run.revision = _judged(run)


def prove(run: RunContext) -> None:
    """Go on only with the head, with what the branch leads to, or with what is vouched for. Raises CommitUnproven, GitUnavailable."""
    found, promoted = run.revision, run.deps.target.revision.promoted is not None
    if found.commit != found.vouched and (promoted or found.commit != found.head):
        run.deps.preparer.prove(found.commit, "" if promoted else found.head)


def _vouch(run: RunContext) -> None:
    """Refuse an explicit commit that isn't proven, or note that force alone vouches for it."""
    try:
        prove(run)
    except CommitUnproven:
        if not run.job.force:
            raise
        run.revision = replace(run.revision, vouched=run.job.commit)


def _head(run: RunContext) -> ChosenRevision:
    """Return the revision at the head that the git host names."""
    if run.deps.target.revision.promoted or run.job.promote:
        return _promoted(run)
    since, surely = _since(run)
    named = run.deps.preparer.head(since)
    if not surely and named.commit != run.state.commit:
        run.revision = replace(run.revision, named=named)  # a ref that lags is looked for again by it, also if the next look fails
        named = run.deps.preparer.head()
    return replace(run.revision, commit=named.commit, head=named.commit, named=named)


def _promoted(run: RunContext) -> ChosenRevision:
    """Return the revision at the commit that other targets have proven, or a person promotes. Raises NotPromoted: there is none yet."""
    promoters, job, pin = run.deps.promoters, run.job, run.state.pin
    if not run.deps.target.revision.promoted:
        seen = f"follows {run.deps.target.revision}, and no other target: there is nothing to promote"
        raise RequestRefused.of(f"target {job.target}", seen, fix=advice("anneal apply {}", job.target))
    if job.promote:
        commit = promoters.by_hand(run.state, job.commit, run.deps.clock(), force=job.force)
        run.job = replace(job, commit=commit)  # once for the whole run
        return replace(run.revision, commit=commit, head=commit, named=Head(commit))
    found = promoters.choose(run.state, run.deps.clock(), _since(run)[0])
    run.revision = replace(run.revision, promotion=found)
    if not (found.commit or job.commit):
        raise NotPromoted(*(Problem(f"target {job.target}", str(each), fix=each.fix) for each in found.awaited))
    stays = pin is not None and pin.commit == found.commit and not (job.unpin or job.commit)
    head = "" if stays else found.commit
    return replace(run.revision, commit=found.commit, head=head, named=Head(head))


def newest(run: RunContext, since: float) -> str:
    """Return the head, by an answer of the git host of that monotonic second or later; empty: there is none. Raises AnnealError."""
    if run.deps.target.revision.promoted:
        return run.deps.promoters.choose(run.state, run.deps.clock(), since).commit
    return run.deps.preparer.head(since).commit


def _aimed(run: RunContext) -> str:
    if run.job.commit:
        _refuse_unknown_commit(run)
        return run.job.commit
    pin = run.state.pin
    return pin.commit if pin and not run.job.unpin and (not run.revision.head or holds(run, pin)) else run.revision.head


def _judged(run: RunContext) -> ChosenRevision:
    """Return the revision with whether it is refused still, and at the recorded commit where that is held instead."""
    refused = refusals.stands(run)
    behind = refused and holds_recorded(run)
    return replace(run.revision, commit=run.state.commit if behind else run.revision.commit, refused=refused, behind=behind)


def holds_recorded(run: RunContext) -> bool:
    """Whether a run whose head is refused, or waits, has something to do for the recorded commit: look for drift, or mend it to its end."""
    state = run.state
    mends = state.attempt is not None and state.attempt.commit == state.commit
    is_applied = bool(state.commit) and state.settings == run.deps.settings and state.pin is None
    return is_applied and (mends or (run.drift and state.attempt is None))


def _since(run: RunContext) -> tuple[float, bool]:
    """Return from when on a look at the git host serves (infinity: only ours, now), and whether it may lead to another commit."""
    known, since = run.deps.preparer.recorded, run.job.since(run.deps.slack)
    if run.lease or since == math.inf:
        return math.inf, True
    if known is None or known[0] != run.state.commit:
        return since, False
    return max(since, known[1]), True


def never_ran(run: RunContext) -> bool:
    """Whether the explicit commit is neither the head nor one that the record knows."""
    return run.job.commit not in {*transitions.deployed(run.state), run.revision.head}


def _refuse_unknown_commit(run: RunContext) -> None:
    if never_ran(run) and not run.job.force:
        seen = f"commit {run.job.commit[:12]} is neither the head nor in this target's history"
        forced = "pass --force to deploy it all the same; it pins the target"
        fix = advice("anneal history {} lists them", run.job.target) if run.job.rollback else forced
        raise RequestRefused.of(f"target {run.job.target}", seen, fix=fix)


# --- pins
def pin_left(run: RunContext) -> Pin | None:
    """Return the pin that a run leaves: a new one for an explicit commit off the head, the old one while it holds."""
    if run.revision.commit == run.revision.head:
        return None
    if run.job.commit:
        by = run.job.actor or run.job.trigger
        reason = f"rollback, asked for in run {run.run}" if run.job.rollback else "explicit commit"
        beside = run.deps.preparer.beside(run.state.reads_paths)
        away = run.deps.preparer.reads_at(_left(run), beside)
        return Pin(run.revision.commit, away, by, reason, stamp(run.deps.clock()), beside=beside)
    return run.state.pin


def _left(run: RunContext) -> str:
    """Return the commit that a new pin leads away from: where other targets have proven none yet, the one that may be the first."""
    return run.revision.head or run.revision.promotion.next or run.deps.preparer.head().commit


def holds(run: RunContext, pin: Pin, head: str = "") -> bool:
    """Whether a head (the present one, unless another is given) leaves a pin as it is."""
    return run.deps.preparer.is_held_by(pin, head or run.revision.head)
