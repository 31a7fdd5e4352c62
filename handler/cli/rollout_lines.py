"""A recorded rollout as lines for people: its groups, each step with how it stands, since when, and what it said. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from handler.app.times import ago, span
from handler.engine.planner.due import DONE, FAILED, SKIPPED
from handler.model.numbers import many
from handler.model.quotation import block, quoted
from handler.state.record import Progress, StepRecord
from handler.state.record_format import seconds_of

PENDING, UNDER_WAY = "pending", "under way"
_SIGNS = {DONE: "+", FAILED: "!", SKIPPED: "-", PENDING: ".", UNDER_WAY: ">"}
"""What stands before a step: it can be read without colours, and on any terminal."""
_STYLES = {DONE: "good", FAILED: "bad", SKIPPED: "dim", PENDING: "dim", UNDER_WAY: "head"}

Styled = tuple[str, str]


def phase_of(step: StepRecord) -> str:
    """Return how a step stands."""
    return step.outcome or (UNDER_WAY if step.started else PENDING)


def tree(known: Progress, now: float) -> Iterator[Styled]:
    """Yield the lines of the whole tree, each with its style. `now`: seconds since the epoch."""
    outcome = known.outcome or UNDER_WAY
    yield f"rollout of {known.commit[:12]}: {outcome}{_lasting(known.started, known.finished, now)}", _STYLES.get(outcome, "")
    width = max((len(step.step) for step in known.steps), default=0)
    for group, steps in _grouped(known.steps):
        yield f"  {group}", ""
        for step in steps:
            first, *more = _step(step, width, now)
            yield f"    {first}", _STYLES.get(phase_of(step), "")
            yield from ((f"      {' ' * width}  {line}", "dim") for line in more)


def _grouped(steps: Sequence[StepRecord]) -> list[tuple[str, list[StepRecord]]]:
    groups: dict[str, list[StepRecord]] = {}
    for step in steps:
        groups.setdefault(step.group, []).append(step)
    return list(groups.items())


def _step(step: StepRecord, width: int, now: float) -> Iterator[str]:
    phase = phase_of(step)
    sign = _SIGNS.get(phase, "?")
    yield f"{sign} {step.step.ljust(width)}  {_act(step)}: {phase}{_share(step)}{_lasting(step.started, step.finished, now)}"
    yield from block(step.message)


def _act(step: StepRecord) -> str:
    return step.action if step.step == step.object else f"{step.action} {step.object}"


def _share(step: StepRecord) -> str:
    return f" at {step.share} %" if step.share and not step.outcome else ""


def _lasting(started: str, finished: str, now: float) -> str:
    if not started:
        return ""
    if not finished:
        return f" for {span(now - seconds_of(started))}"
    return f" in {span(seconds_of(finished) - seconds_of(started))}, {ago(finished, now)}"


def step_line(step: StepRecord) -> str:
    """Say in one line what became of a step: what a log of a rollout is made of."""
    took = f" in {span(seconds_of(step.finished) - seconds_of(step.started))}" if step.started and step.finished else ""
    said = f": {quoted(step.message)}" if step.message else ""
    name = "" if step.step == step.object else f", {step.step}"
    return f"{step.group}{name}: {step.action} {step.object} {phase_of(step)}{_share(step)}{took}{said}"


def now_at(known: Progress) -> str:
    """Say in a few words which step is under way, and how many more; empty: none is."""
    found = [step for step in known.steps if phase_of(step) == UNDER_WAY]
    if not found:
        return ""
    step, more = found[0], f" and {many(len(found) - 1, 'more step')}" if len(found) > 1 else ""
    name = "" if step.step == step.object else f"{step.step}: "
    return f"{step.group}, {name}{_act(step)}{_share(step)}{more}"


def summed(known: Progress, now: float) -> str:
    """Say in one line how a rollout stands."""
    ended = [step for step in known.steps if step.outcome]
    failed = [step for step in known.steps if step.outcome == FAILED]
    if known.outcome == FAILED:
        at = f" at {failed[-1].group}, {failed[-1].step}" if failed else ""
        return f"failed{at}, {ago(known.finished, now)}"
    if known.outcome:
        passed = f", {len(failed)} of them failed and passed over" if failed else ""
        return f"{known.outcome}, {many(len(known.steps), 'step')}{passed}{_lasting(known.started, known.finished, now)}"
    under_way = ", ".join(f"{step.group}, {step.step}" for step in known.steps if phase_of(step) == UNDER_WAY)
    there = f"{len(ended)} of {many(len(known.steps), 'step')}{_lasting(known.started, '', now)}"
    return f"{there}; now {under_way}" if under_way else there
