"""A target takes over what it had under another name, or in another state namespace, in one run of its own.

    both Leases           its own, then the old record's: what was planned before is planned again if either record has moved
    its own record        with the open attempt and `former`: a run that is killed from here on is finished by the next one
    `renamedTo`           in the old record, by a swap under the old Lease: from here on no run of the old name writes
    members' marks        first of what is kept, then with what is applied; what isn't declared is pruned as ever
    the commit            recorded as ever
    the old record        deleted last, and its Lease, once a LIST finds no member with the old marks

Law: every step can be repeated. What is left keeps `former` open, so that the next run comes back to it: also an object that git declares
no more and of which the API server, or a policy of its administrator, refuses the new marks. The result names it, and the rest of the run
goes on. A declared one that is refused refuses the run, as ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from handler.cluster.live import members
from handler.cluster.parallel import parallel
from handler.cluster.write import Writer
from handler.engine.apply.mark_writer import written
from handler.engine.planner.join_errors import raise_together
from handler.engine.planner.mark_dry_run import is_refusal
from handler.engine.planner.members import living, may_be_gone, served
from handler.engine.planner.planner import Planned
from handler.engine.run.context import RunContext
from handler.engine.run.former_record import FormerRecord
from handler.model.advice import advice
from handler.model.errors import AccessDenied, AnnealError, Busy, Moved, Problem
from handler.model.names import PART_OF, Identity, Resource, identity_of
from handler.model.numbers import many
from handler.model.plan import Change
from handler.model.result import Result
from handler.plan.former_marks import relabelling
from handler.state.record_format import stamp
from handler.state.record_values import RecordName


def hold(run: RunContext) -> None:
    """Take the old record's Lease, too, where runs of the old name may still write. Raises Busy."""
    former = run.former
    if former is None or former.lease or is_claimed(run):
        return
    former.lease = former.lock.acquire(wait=run.deps.lease_duration * 1.2, stop=run.stop)


def free(run: RunContext) -> None:
    """Free the old record's Lease. Never fails."""
    if run.former and run.former.lease:
        run.former.lease.hand_over()
        run.former.lease = None


def is_claimed(run: RunContext) -> bool:
    """Whether no record is left to be claimed: there is none, it says already that it was taken over, or it is gone."""
    places, former = run.deps.places, run.former
    return places is None or former is None or former.is_claimed_by(run.job.target, places.namespace)


def claim(run: RunContext) -> None:
    """Say in the old record that it was taken over. Raises Moved: it has changed since this run was planned; LeaseLost."""
    former, places = run.former, run.deps.places
    if former is None or places is None or is_claimed(run):
        return
    old, lease = former.stored.state, former.lease
    if old is None or lease is None:
        raise Moved.of(str(former.place), "is to be taken over, and wasn't when this run began")
    lease.check()
    new = RecordName(run.job.target, places.namespace, stamp(run.deps.clock()))
    claimed = replace(old, renamed_to=new, attempt=None, waiting=None, held=None, approval=None, requested=None)
    former.stored = former.store.swap(former.stored, claimed, lease.token)
    free(run)


# --- marks
def relabel(run: RunContext, planned: Planned) -> tuple[Change, ...]:
    """Write the marks of members that nothing else of the plan writes; return what was written. Raises what the writes raise.

    What the API server refuses of them keeps its former marks, and is named at the end of the run.
    """
    changes, former = planned.plan.relabelled, run.former
    if not changes or former is None:
        return ()
    answers = parallel([partial(_relabelled, run, change) for change in changes])
    former.refused = {change.identity: found.problems[0] for change, found in zip(changes, answers, strict=True) if is_refusal(found)}
    done = tuple(answer for answer in answers if isinstance(answer, Change))
    run.wrote(done)
    raise_together([answer for answer in answers if not is_refusal(answer)], changes)
    return done


def _relabelled(run: RunContext, change: Change) -> Change | None:
    """Write one member's marks; None: it is gone, or carries its former marks no more."""
    planner, identity = run.deps.planner, change.identity

    def write(resource: Resource, live: dict[str, Any] | None) -> Change | None:
        if live is not None and not planner.ours.is_former(live, identity):
            return None
        found = change if live is None else relabelling(planner.ours, identity, live)
        assert found.manifest is not None  # noqa: S101 - it holds the marks
        Writer(planner.api, run.fence).merge(resource, found.manifest.body(), found.uid, found.resource_version)
        return found

    return written(planner, run.fence, identity, write)


# --- the end
def finish(run: RunContext, result: Result, planned: Planned) -> Result:
    """Delete the old record and its Lease once nothing carries their marks; return the result, with what is left."""
    former = run.former
    if run.state.former is None or former is None or run.lease is None:
        return result
    try:
        left = _left(run)
        if not left:
            _remove(run, former)
            run.stored = run.deps.store.swap(run.stored, replace(run.state, former=None), run.lease.token)
            return result
        seen = _said(run, former, left, {**planned.refused, **former.refused})
    except AnnealError as failed:
        error = may_be_gone(failed) if isinstance(failed, AccessDenied) else failed
        seen = f"{former.place} stays until the next run: {error.problems[0] if error.problems else error}"
    return replace(result, message="; ".join(filter(None, [result.message, seen])))


def _said(run: RunContext, former: FormerRecord, left: Sequence[Identity], refused: Mapping[Identity, Problem]) -> str:
    first = next((each for each in left if each in refused), left[0])
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    seen = f"{many(len(left), 'object')} still {'carries' if len(left) == 1 else 'carry'} the marks of {former.place}: {first}{more}"
    if first not in refused:
        return seen
    why = "; ".join(filter(None, (refused[first].message, refused[first].fix)))
    return advice(
        "{text}: its new marks are refused: {text}; once that is allowed, `anneal apply {}` ends the takeover", seen, why, run.job.target
    )


def _left(run: RunContext) -> list[Identity]:
    """Return the members that carry the old marks still, by LISTs of every recorded kind."""
    planner = run.deps.planner
    if planner.former is None:
        return []
    kinds = served(planner.discovery, run.state.kinds)
    scopes = None if planner.scopes is None else living(planner.api, {*planner.scopes, *run.state.namespaces})
    live_ones = members(planner.api, kinds, f"{PART_OF}={planner.former.applyset}", scopes, partial=True, vanished=set())
    return sorted(one for live in live_ones if planner.former.are_on(live, one := identity_of(live)))


def _remove(run: RunContext, former: FormerRecord) -> None:
    lease = former.lock.acquire(wait=run.deps.lease_duration * 1.2, stop=run.stop)
    try:
        former.stored = former.store.read()
        if not is_claimed(run):
            raise Busy.of(str(former.place), "isn't this target's to delete any more")
        if former.stored.uid:
            former.store.remove(former.stored)
        lease.remove()
    finally:
        lease.hand_over()
