"""Jobs that remove themselves (`ttlSecondsAfterFinished`): once one was applied, that it isn't there means that it is done.

    applied by the recorded commit       done until its declaration changes
    applied since, by an open attempt    not run again while others of its commit are waited for, or have failed
    named by a record of format 1        done while the set that it recorded is rendered

Law: one that the record doesn't know as git declares it now is created. One that made its attempt fail is forgotten and tried again.
No `force` runs one again, for every `anneal apply` is forced: only another declaration does, or a step of a rollout that makes it anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from handler.model.errors import AnnealError
from handler.model.manifest import canonical
from handler.model.names import IDENTITY, PART_OF, Identity
from handler.model.plan import Action, Change, Due
from handler.model.rollout import Mode
from handler.plan.admit import Desired
from handler.rollout.health import JOB
from handler.rollout.kinds.workloads import removes_itself
from handler.run.due import DONE
from handler.run.rolled import Rolled
from handler.state.ran import Ran
from handler.state.record import State

REASON = "was applied by this commit; its ttlSecondsAfterFinished removes it once it has finished"
_MARKS = (("labels", PART_OF), ("annotations", IDENTITY))
Known = frozenset[tuple[Identity, str]]
"""Jobs that ran, as they were declared then; empty: as they are declared now."""


def known(state: State, due: Iterable[Due], rolled: Rolled, digest: str) -> Known:
    """Return what ran, but for what a due step makes anew. `digest`: of the rendered set.

    What a record of format 1 names counts while the same set is rendered from which its commit was applied.
    """
    same = bool(state.commit) and state.digest == digest
    ran = [each for each in state.ran if each.declared or same]
    anew = {item.identity for stage in rolled.stages for item in stage if item.mode is Mode.RECREATE} & {one.identity for one in due}
    return frozenset((each.identity, each.declared) for each in ran if each.identity not in anew)


def has_run(item: Desired, known: Known) -> bool:
    """Whether an object that isn't there is done."""
    return _expires(item) and not known.isdisjoint({(item.identity, ""), (item.identity, _declaration(item))})


def applied(items: Iterable[Desired]) -> tuple[Ran, ...]:
    """Return what an open attempt keeps of what it has applied; hooks are run by their rollout alone."""
    found = [item for item in items if item.mode is not Mode.HOOK and _expires(item)]
    return tuple(Ran(item.identity, _declaration(item), open=True) for item in sorted(found, key=lambda item: item.identity))


def noted(state: State, fresh: Iterable[Ran]) -> State:
    """Return the state of an open attempt that has applied more of them."""
    return replace(state, ran=tuple(dict.fromkeys((*state.ran, *fresh))))


def opened(state: State, changes: Iterable[Change], desired: Mapping[Identity, Desired]) -> State:
    """Return the state as an attempt opens: with what an earlier one has left, and what lives and isn't deleted."""
    left = tuple(each for each in state.ran if not each.open or each.identity in desired)
    lives = [each.identity for each in changes if each.uid and not each.removes]
    return noted(replace(state, ran=left), applied(desired[one] for one in lives if one in desired))


def forgotten(state: State, error: AnnealError) -> State:
    """Return the state of an attempt without what its failure names."""
    names = {problem.subject for problem in error.problems}
    return replace(state, ran=tuple(each for each in state.ran if not each.open or str(each.identity) not in names))


def recorded(state: State, changes: Iterable[Change], desired: Mapping[Identity, Desired]) -> State:
    """Return the state with what ran by the commit that is recorded: its plan came out with it, or a step of an earlier run has done it."""
    steps = {step.object for step in (state.rollout.steps if state.rollout else ()) if step.outcome == DONE}
    there = [each.identity for each in changes if each.action is not Action.SKIP or str(each.identity) in steps]
    ran = applied(desired[identity] for identity in there if identity in desired)
    return replace(state, ran=tuple(replace(each, open=False) for each in ran))


def _expires(item: Desired) -> bool:
    return item.identity.group_kind == JOB and removes_itself(item.manifest.body())


def _declaration(item: Desired) -> str:
    """Return the digest of an object as git has it, whatever marks this version puts on."""
    body = item.manifest.body()
    for part, name in _MARKS:
        marks = body["metadata"].get(part) or {}
        marks.pop(name, None)
        if not marks:
            body["metadata"].pop(part, None)
    return hashlib.sha256(canonical(body)).hexdigest()
