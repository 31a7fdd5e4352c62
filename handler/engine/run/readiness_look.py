"""Looks at a target that another one depends on: its record, and the head of its revision; `readiness` judges what is found."""

from __future__ import annotations

from handler.engine.run import readiness
from handler.engine.run.dependencies import AwaitedTarget, Dependencies
from handler.engine.run.readiness import SeenDependency
from handler.model.advice import advice
from handler.model.errors import AnnealError
from handler.state.record_values import Obstacle


def obstacles(deps: Dependencies, head: str, since: float) -> tuple[Obstacle, ...]:
    """Return what keeps a target's new `head` from being brought, by dependency; none: all of them are ready. `since`: see `obstacle`."""
    looked = (obstacle(deps, each, head, since) for each in deps.awaited)
    return tuple(each for each in looked if each)


def obstacle(deps: Dependencies, awaited: AwaitedTarget, head: str, since: float) -> Obstacle | None:
    """Return why a dependency isn't ready for what its dependant's `head` brings; None: it is. What can't be seen isn't ready.

    `since`: from when on an answer of the dependency's git host serves, in monotonic seconds; infinity: from now on.
    """
    target = awaited.target
    try:
        record = deps.others.read(target.name)
        if (found := readiness.at_rest(target, record)) or record.state is None:
            return found
        together = target.repository.is_same(deps.target.repository) and target.revision.is_like(deps.target.revision)
        beyond = together and _is_beyond(awaited, deps, record.state.commit, head)
        named = record.state.commit if beyond else head if together else awaited.head(record.state, since)
        pinned = record.state.pin is not None and awaited.is_held_by(record.state.pin, named)
    except AnnealError as error:
        seen = str(error).partition("\n")[0]
        return Obstacle(target.name, f"whether it is ready can't be seen: {seen}", advice("anneal status {}", target.name))
    return readiness.of_commit(SeenDependency(target, awaited.settings, record, named, together and not beyond, pinned), deps.clock())


def _is_beyond(awaited: AwaitedTarget, deps: Dependencies, has: str, head: str) -> bool:
    """Whether a dependency has what is meant for both, or something newer, where the two follow one branch at a different pace."""
    is_apart = bool(awaited.target.revision.promoted or deps.target.revision.promoted)
    return is_apart and (has == head or awaited.reaches(has, head))
