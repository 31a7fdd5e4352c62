"""One target on a page: what to do next, then how it stands, in lines. What is shown stands in its record, its Lease and the heartbeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from handler.app.target_row import TargetRow
from handler.app.times import ago, span, until
from handler.cli.follow_up_commands import GivenFlags
from handler.cli.next_step import NextStep, complete, next_step, pinned_text, server_text
from handler.cli.output import Output
from handler.cli.rollout_lines import UNDER_WAY, now_at, phase_of, step_line, summed
from handler.engine.planner.due import FAILED
from handler.model.advice import advice
from handler.model.health import HealthState
from handler.model.numbers import counted, many
from handler.model.quotation import block, quoted
from handler.model.result import Outcome
from handler.state.record import Drift, HeldPlan, Run, RunStatus, State
from handler.state.record_format import seconds_of, stamp
from handler.state.run_history import ROLLING
from handler.state.suspension import suspension

if TYPE_CHECKING:
    from handler.inspect.pod_logs import LoggedPod

_SHOWN = 10
_HANG = 13  # the indent of a row's text
_EXPLAINED = (Outcome.REFUSED, Outcome.WAITING, Outcome.SUPERSEDED)
_WELL = "applied"  # the phase whose beginning isn't shown: it is no commit's, and goes on when the next one is applied


def show(output: Output, row: TargetRow, given: GivenFlags, logged: Sequence[LoggedPod] = ()) -> None:
    """Print one target: the next step, then the facts that led to it, and what its containers have logged."""
    for text, style, hang in lines(row, given):
        output.line(text, style, hang=hang, whole=not hang)
    for number, line in enumerate(line for each in logged for line in each.lines()):
        output.line(f"  {'' if number else 'logs:':10} {line}", hang=_HANG)


def facts(row: TargetRow, given: GivenFlags) -> dict[str, Any]:
    """Return all of it as JSON, but for what only looks at health read."""
    state = row.state and replace(row.state, health=replace(row.state.health, apart=None))
    return {"target": row.target.name, "next": next_step(row, given), "trouble": str(row.trouble or ""), "lease": row.lease, "state": state}


def lines(row: TargetRow, given: GivenFlags) -> Iterator[tuple[str, str, int]]:
    """Yield each line with its style and the indent of what is wrapped; 0: it stays whole, so that it can be copied."""
    step = next_step(row, given)
    yield f"{row.target.name}: {_phase(row)}", _style(row, step), 2
    yield f"  next: {step.text}", "", 8
    if step.command:
        yield f"    {step.command}", "head", 0
    for label, text in _rows(row, given):
        yield f"  {label + ':' if label else '':10} {text}", "", _HANG


def _phase(row: TargetRow) -> str:
    if row.state is None:
        lost = f"record missing, {many(row.members, 'object')} found" if row.members else row.phase.replace("-", " ")
        return "unknown" if row.trouble else lost
    if suspension(row.target, row.state, row.now):
        return "suspended"
    state, rollout = row.state.status, row.state.rollout
    if state.phase == ROLLING and rollout:
        at, since = now_at(rollout), state.since if rollout.outcome else rollout.started
        return f"rolling out for {span(row.now - seconds_of(since))}" + (f": {at}" if at else "")
    lasts = state.since and state.phase != _WELL
    health = row.state.health
    if state.phase == _WELL and health.state not in ("", HealthState.HEALTHY):
        return f"{state.phase}, {health.state}" + (f" for {ago(health.since, row.now).removesuffix(' ago')}" if health.since else "")
    return f"{state.phase or 'new'}" + (f" for {ago(state.since, row.now).removesuffix(' ago')}" if lasts else "")


def _style(row: TargetRow, step: NextStep) -> str:
    state = row.state
    bad = row.trouble or (state is not None and (state.status.phase == "failed" or state.health.state == HealthState.DEGRADED))
    return "bad" if bad else "warn" if step.urgent else "good"


def _rows(row: TargetRow, given: GivenFlags) -> Iterator[tuple[str, str]]:
    if row.trouble and row.state:
        yield from (("trouble", line) for line in str(row.trouble).splitlines())
    if row.doubt:
        yield "cluster", f"whether the record is of this cluster isn't known: {row.doubt}"
    if row.lease:
        yield "lease", f"{row.lease.holder}, renewed {row.lease.age:.0f} s ago" + (", a run is asked for" if row.lease.requested else "")
    if row.pulse.readable or not row.trouble:
        yield "server", server_text(row)
    yield from _head_rows(row, given)
    if row.target.suspend:
        yield "suspended", "in the configuration (anneal.yaml), until it says `suspend: false`"
    if row.state:
        yield from _commit_rows(row.state, row.now)
        yield from _rollout_rows(row.state, row.now)
        yield from _health_rows(row.state, row.now)
        yield from _people_rows(row.state, row.now)
        yield from _status_rows(row, row.state.status)
        yield from _leftover_rows(row.state, row.now)


def _head_rows(row: TargetRow, given: GivenFlags) -> Iterator[tuple[str, str]]:
    newest, applied = row.newest, row.state.commit if row.state else ""
    if newest and newest.trouble:
        yield from (("" if number else "git", line) for number, line in enumerate(str(newest.trouble).splitlines()))
    elif newest and newest.commit and newest.commit != applied:
        info = newest.info
        label = "proven" if row.target.revision.promoted else "git"
        yield label, newest.commit[:12] + (_titled(info.subject, info.author, ago(stamp(info.time), row.now)) if info else "")
    for number, each in enumerate(newest.awaited if newest else ()):
        text = f"{each}, until {stamp(each.due)}" if each.due else each.advised
        yield "" if number else "promotion", complete(text, row, given)


def _commit_rows(state: State, now: float) -> Iterator[tuple[str, str]]:
    if state.commit:
        run = next((run for run in state.history if run.commit == state.commit and run.subject), None)
        yield "commit", state.commit[:12] + (_titled(run.subject, run.author, ago(run.started, now)) if run else "")
    if state.renderer:
        yield "renderer", state.renderer
    if state.history:
        yield "last run", run_text(state.history[0], now)
    owed = [each.commit[:12] for each in state.commit_statuses if each.is_owed]
    if owed:
        yield "feedback", f"its git host doesn't show yet how {many(len(owed), 'commit')} ended: {', '.join(owed)}"
    if state.former:
        yield "takeover", f"of what {quoted(str(state.former))} has, since {ago(state.former.at, now)}; the next run goes on with it"
    if state.attempt:
        yield "attempt", f"{state.attempt.commit[:12]}, open for {ago(state.attempt.since, now).removesuffix(' ago')}"


def _titled(subject: str, author: str, when: str) -> str:
    return f"  {quoted(f'{subject} ({author})' if author else subject)}, {when}"


def _rollout_rows(state: State, now: float) -> Iterator[tuple[str, str]]:
    if state.rollout:
        yield "rollout", summed(state.rollout, now)
        yield from (("", step_line(step)) for step in state.rollout.steps if phase_of(step) in (UNDER_WAY, FAILED))


def _health_rows(state: State, now: float) -> Iterator[tuple[str, str]]:
    if state.awaits and state.status.phase == Outcome.WAITING:
        waits = f"{state.awaits.commit[:12]}, {ago(state.awaits.since, now).removesuffix(' ago')} so far"
        by_hand = advice("`anneal apply {} --commit {}`", state.target, state.awaits.commit)
        yield "waits", f"{waits}; {by_hand} brings it all the same"
        yield from (("", f"for {each.testimony}") for each in state.awaits.on)
    failed_early = state.status.phase == "failed" and state.status.who == "author"
    if state.waiting and (state.waiting.over or not failed_early):
        ended = "; its time is over, so each tick looks once more" if state.waiting.over else ""
        yield "waiting", f"for {state.waiting.what}, {ago(state.waiting.since, now).removesuffix(' ago')} so far{ended}"
    message = state.status.message if state.status.phase == "failed" else ""
    left = [line for line in state.status.unhealthy if line not in message]
    yield from _recorded("unhealthy", left[:_SHOWN])
    yield from _more(len(left))
    worst = [line for line in state.health.worst if not any(line in each for each in (message, *left))]
    yield from _recorded(state.health.state, worst)
    yield from _recorded("note", state.health.notes)


def _recorded(label: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what a record says, as a block: it is testimony."""
    lines = (line for text in texts for line in block(text))
    yield from (("" if number else label, line) for number, line in enumerate(lines))


def run_text(run: Run, now: float) -> str:
    """Return one run in a line; why a request was refused, or what interrupted or overtook a wait, stands nowhere else."""
    times = f" ({run.times} times, last {ago(run.last, now)})" if run.times > 1 else ""
    said = quoted(run.message) if run.outcome in _EXPLAINED else counted(run.counts)
    return f"{run.outcome}, {run.asked_by} {ago(run.started, now)}, {run.duration:.1f} s: {said}{times}"


def _people_rows(state: State, now: float) -> Iterator[tuple[str, str]]:
    pause = state.suspension(now)
    if pause:
        end = f", ends {until(pause.until, now)}" if pause.until else ""
        yield "suspended", f"by {quoted(pause.by)} {ago(pause.at, now)}{end}: {quoted(pause.reason) or 'no reason given'}"
    if state.held:
        yield from held_rows(state.held, now)
    if state.pin:
        yield "pinned", pinned_text(state, now)


def held_rows(held: HeldPlan, now: float) -> Iterator[tuple[str, str]]:
    """Yield what waits for an approval: its id, why, and what it would do."""
    at = f" at {held.commit[:12]}" if held.commit else ""
    yield "held", f"{quoted(held.id)}{at}, {ago(held.since, now)}"
    yield from (("", line) for reason in held.reasons for line in block(reason))
    yield from (("", f"{action} {name}") for action, name, _ in held.changes[:_SHOWN])
    yield from _more(len(held.changes))


def _status_rows(row: TargetRow, status: RunStatus) -> Iterator[tuple[str, str]]:
    if status.phase in ("failed", "pruning"):
        label = "failing" if status.phase == "failed" else "pruning"
        yield from _recorded(label, [status.message])
    if status.next_try:
        when = "by no server, for none runs" if row.unserved else until(status.next_try, row.now)
        yield "next try", f"{when}, after {many(status.failures, 'failure')}"


def _leftover_rows(state: State, now: float) -> Iterator[tuple[str, str]]:
    for drift in state.drift[:_SHOWN]:
        yield "drift", drift_text(drift)
    yield from _more(len(state.drift))
    for orphan in state.orphans[:_SHOWN]:
        left = f", left to {orphan.sibling}" if orphan.sibling else ""
        goes = f", deleted after {orphan.until}" if orphan.until else ", kept" if orphan.unmarked and not orphan.sibling else ""
        yield "orphan", f"{orphan.identity}{left}, seen first {ago(orphan.since, now)}{goes}"
    yield from _more(len(state.orphans))


def drift_text(drift: Drift) -> str:
    """Say how live differs from git."""
    if drift.path:
        return f"{drift.identity} {drift.path}: {drift.live or '(none)'} → {drift.declared or '(none)'} (live by {drift.manager or '?'})"
    return f"{drift.identity}: " + (
        "is gone" if not drift.live else "isn't declared" if not drift.declared else "isn't marked as this target's"
    )


def _more(number: int) -> Iterator[tuple[str, str]]:
    if number > _SHOWN:
        yield "", f"and {number - _SHOWN} more; -o json has all"
