"""When instances of a template have ended, by its own history: what vanishes together is counted across processes and restarts. Pure.

Law: what was let go within a minute is one entry; it counts until nothing has been let go for a minute.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from handler.model.event import Job
from handler.model.names import run_id
from handler.model.result import Outcome
from handler.state import run_history
from handler.state.record import Run
from handler.state.record_format import seconds_of, stamp

TOGETHER = 60.0
"""Seconds in which instances that vanish count as vanishing together."""
_ENDED = "ended"


def with_ends(history: tuple[Run, ...], job: Job, names: Collection[str], now: float) -> tuple[Run, ...]:
    """Return a template's history with instances that a run lets go. `names`: theirs; `now`: Unix seconds."""
    before = history[0] if history and _ENDED in history[0].counts else None
    if before and now - seconds_of(before.started) < TOGETHER:
        count = before.counts[_ENDED] + len(names)
        known = [each for each in before.changed if each.endswith(_ENDED)]
        return (replace(before, counts={_ENDED: count}, changed=_lines(known, names, count), last=stamp(now)), *history[1:])
    entry = Run(job.run or run_id(job.target), job.cause, str(Outcome.APPLIED), stamp(now), last=stamp(now), actor=job.actor)
    entry = replace(entry, message="their objects are gone", counts={_ENDED: len(names)}, changed=_lines([], names, len(names)))
    return run_history.append(history, entry)


def _lines(known: list[str], names: Collection[str], count: int) -> tuple[str, ...]:
    lines = (*known, *(f"{name} {_ENDED}" for name in names))[: run_history.CHANGED]
    return lines if len(lines) == count else (*lines[:-1], f"and {count - len(lines) + 1} more")


def ended_lately(history: tuple[Run, ...], now: float) -> int:
    """Return how many instances were let go together with what vanishes now."""
    return sum(each.counts.get(_ENDED, 0) for each in history if _ENDED in each.counts and now - seconds_of(each.last) < TOGETHER)
