"""Jobs that remove themselves (`ttlSecondsAfterFinished`): once one was applied, that it isn't there means that it is done.

    applied by the recorded commit       done until its declaration changes
    applied since, by an open attempt    not run again while others of its commit are waited for, or have failed
    named by a record of format 1        done while the set that it recorded is rendered
    named by a sibling's record alone    done, for it has moved here; noted with the commit that is recorded
    not declared any more                kept while a sibling declares it, or may, and hasn't noted it

Law: one that no record knows as git declares it now is created; one that made its attempt fail is tried again. `force` runs none again.
While a sibling's record can't be read, what it may have run isn't created: one migration late does less harm than the same one twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from handler.engine.planner.due import DONE
from handler.engine.planner.siblings import SiblingQuestions
from handler.health.kinds.built_in import removes_itself
from handler.health.kstatus import JOB
from handler.model.errors import AnnealError, Problem, TransientError
from handler.model.manifest import canonical
from handler.model.names import IDENTITY, PART_OF, Identity
from handler.model.plan import Action, Change, Due
from handler.model.rollout import Mode
from handler.plan.admission import Desired
from handler.plan.rollout import PlannedRollout
from handler.state.record import Ran, State

REASON = "was applied by this commit; its ttlSecondsAfterFinished removes it once it has finished"
GIVEN = "was applied by target {} as it is declared here; its ttlSecondsAfterFinished removes it once it has finished"
_MARKS = (("labels", PART_OF), ("annotations", IDENTITY))


@dataclass(frozen=True, slots=True)
class RecordedJobs:
    """What the record says. `ran`: Jobs, by the digest of their declaration (empty: as now); `anew`: what a due step makes anew."""

    ran: frozenset[tuple[Identity, str]] = frozenset()
    anew: frozenset[Identity] = frozenset()


def known(state: State, due: Iterable[Due], planned_rollout: PlannedRollout, digest: str) -> RecordedJobs:
    """Return what the record says. What one of format 1 names counts while the same set (`digest`) is rendered."""
    same = bool(state.commit) and state.digest == digest
    ran = [each for each in state.ran if each.declared or same]
    recreated = {item.identity for stage in planned_rollout.stages for item in stage if item.mode is Mode.RECREATE}
    anew = recreated.intersection(one.identity for one in due)
    return RecordedJobs(frozenset((each.identity, each.declared) for each in ran), frozenset(anew))


def has_run(item: Desired, known: RecordedJobs) -> bool:
    """Whether an object that isn't there is done by the target's own record."""
    if not _expires(item) or item.identity in known.anew:
        return False
    return not known.ran.isdisjoint({(item.identity, ""), (item.identity, _declaration(item))})


def asks_siblings(item: Desired, known: RecordedJobs, handover: SiblingQuestions) -> bool:
    """Whether an object that isn't there may have run under a sibling: the target's own record, which prevails, doesn't name it."""
    if item.mode in (Mode.HOOK, Mode.LEAVE) or not _expires(item):
        return False
    return item.identity not in {identity for identity, _ in known.ran} | known.anew and handover.concerns(item.identity)


def done(item: Desired, known: RecordedJobs, handover: SiblingQuestions) -> str:
    """Return why an object that isn't there is done; empty: it isn't. Raises TransientError: a sibling's record can't be read."""
    if has_run(item, known):
        return REASON
    giver = _giver(item, handover) if asks_siblings(item, known, handover) else ""
    return GIVEN.format(giver) if giver else ""


def _giver(item: Desired, handover: SiblingQuestions) -> str:
    """Return the sibling under which an object ran as git declares it now; empty: none. Raises as `done`."""
    declared, unread = _declaration(item), []
    for name, found in handover.ran(item.identity):
        if isinstance(found, AnnealError):
            seen = f"isn't created yet: target {name} may have run it, and its record can't be read"
            unread += [Problem(str(item.identity), seen, item.manifest.place), *found.problems]
        elif any(each.declared == declared for each in found):
            return name
    if unread:
        raise TransientError(*unread)
    return ""


def given(known: RecordedJobs, desired: Collection[Identity], handover: SiblingQuestions) -> frozenset[Identity]:
    """Return the Jobs that ran, aren't declared any more, and that a sibling may declare without having noted them. Raises AnnealError."""
    left = {identity for identity, declared in known.ran if declared and identity not in desired}
    waits = [identity for identity in left if not any(isinstance(found, tuple) and found for _, found in handover.ran(identity))]
    return frozenset(handover.claims(waits))


def applied(items: Iterable[Desired]) -> tuple[Ran, ...]:
    """Return what an open attempt keeps of what it has applied; hooks are run by their rollout alone."""
    found = [item for item in items if item.mode is not Mode.HOOK and _expires(item)]
    return tuple(Ran(item.identity, _declaration(item), open=True) for item in sorted(found, key=lambda item: item.identity))


def noted(state: State, fresh: Iterable[Ran]) -> State:
    """Return the state of an open attempt that has applied more of them."""
    return replace(state, ran=tuple(dict.fromkeys((*state.ran, *fresh))))


def opened(state: State, changes: Iterable[Change], desired: Mapping[Identity, Desired], given: Collection[Identity] = ()) -> State:
    """Return the state as an attempt opens: with what an earlier one has left, and what lives and isn't deleted. `given`: see there."""
    left = tuple(each for each in state.ran if not each.open or each.identity in desired or each.identity in given)
    lives = [each.identity for each in changes if each.uid and not each.removes]
    return noted(replace(state, ran=left), applied(desired[one] for one in lives if one in desired))


def forgotten(state: State, error: AnnealError) -> State:
    """Return the state of an attempt without what its failure names."""
    names = {problem.subject for problem in error.problems}
    return replace(state, ran=tuple(each for each in state.ran if not each.open or str(each.identity) not in names))


def recorded(state: State, changes: Iterable[Change], desired: Mapping[Identity, Desired], given: Collection[Identity] = ()) -> State:
    """Return the state with what ran by the recorded commit: its plan came out with it, or an earlier run's step did it (`given`)."""
    steps = {step.object for step in (state.rollout.steps if state.rollout else ()) if step.outcome == DONE}
    there = [each.identity for each in changes if each.action is not Action.SKIP or str(each.identity) in steps]
    ran = applied(desired[identity] for identity in there if identity in desired)
    kept = (each for each in state.ran if each.declared and each.identity in given)
    return replace(state, ran=tuple(dict.fromkeys(replace(each, open=False) for each in (*ran, *kept))))


def _expires(item: Desired) -> bool:
    return item.identity.group_kind == JOB and removes_itself(item.manifest.body())


def _declaration(item: Desired) -> str:
    body = item.manifest.body()
    for part, name in _MARKS:
        marks = body["metadata"].get(part) or {}
        marks.pop(name, None)
        if not marks:
            body["metadata"].pop(part, None)
    return hashlib.sha256(canonical(body)).hexdigest()
