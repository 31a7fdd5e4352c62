"""`anneal status`: what to do next, then how each target stands. It reads the record and the Lease, with --logs pods and logs, too."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import click

from handler.cli import logs, reports
from handler.cli.advice import Advice, View, is_suspended, next_step, pinned_text
from handler.cli.options import command, target_argument
from handler.cli.printing import Output
from handler.cli.session import Session
from handler.cli.steps import UNDER_WAY, now_at, phase_of, summed, told
from handler.cli.times import ago, span, until
from handler.config.settings import Target
from handler.model.errors import AnnealError
from handler.model.health import HealthState
from handler.model.result import Outcome
from handler.model.words import many
from handler.run.due import FAILED
from handler.state.heartbeat import known
from handler.state.history import ROLLING
from handler.state.record import Run, State
from handler.state.rules import seconds_of

_SHOWN = 10
_EXPLAINED = (Outcome.REFUSED, Outcome.WAITING, Outcome.SUPERSEDED)
_WELL = "applied"
"""The phase whose beginning is told nowhere: it is no commit's, and goes on when the next one is applied."""


@command()
@target_argument
@click.option("--logs", "with_logs", is_flag=True, help="Also the last lines of unhealthy containers, read now, with your rights.")
def status(session: Session, target: str | None, with_logs: bool) -> int:
    """Say how TARGET stands (all targets when none is named), beginning with what to do next."""
    views = [_view(session, each) for each in session.all_or(target)]
    logged = [logs.read(session, view.target, logs.of_record(view.state)) if with_logs else [] for view in views]
    output = session.output
    if output.as_json:
        more = [{"logs": [each.facts() for each in found]} if with_logs else {} for found in logged]
        facts = [_facts(view) | also for view, also in zip(views, more, strict=True)]
        output.document(facts[0] if target else {"targets": facts})
    for number, view in enumerate(views if not output.as_json else ()):
        if number:
            output.line()
        _show(output, view, logged[number])
    return reports.FAILED if any(view.trouble and not view.state for view in views) else reports.DONE_CODE


def _view(session: Session, target: Target) -> View:
    """Read all that is known of a target; what can't be read is its trouble."""
    now = time.time()
    try:
        handler = session.handler
        store, lock = handler.store(target), handler.lock(target)
        state, lease = store.read().state, lock.peek()
    except AnnealError as error:
        return View(target, None, None, now, error.code, str(error))
    try:
        if state:
            store.at_home(state, target.repository.url, handler.objects(target).cluster_uid())
            beat = None if state.attempt else handler.beat(target)  # what is open isn't judged by those who watch
            state = replace(state, health=known(state.health, beat, now, handler.settings.drift_interval))
    except AnnealError as error:
        return View(target, state, lease, now, error.code, str(error))
    return View(target, state, lease, now)


def _facts(view: View) -> dict[str, Any]:
    step = next_step(view)
    return {"target": view.target.name, "next": step, "trouble": view.trouble, "lease": view.lease, "state": _told(view.state)}


def _told(state: State | None) -> State | None:
    """Return a record without what only looks at health read."""
    return replace(state, health=replace(state.health, apart=None)) if state else None


def _show(output: Output, view: View, logged: Sequence[logs.Logged]) -> None:
    """Print one target: the next step, then the facts that led to it, and what its containers have logged."""
    step = next_step(view)
    output.line(f"{view.target.name}: {_phase(view)}", _style(view, step))
    output.line(f"  next: {step.text}")
    if step.command:
        output.line(f"    {step.command}", "head")
    for label, text in _rows(view):
        output.line(f"  {label + ':' if label else '':10} {text}")
    for number, line in enumerate(line for each in logged for line in each.lines()):
        output.line(f"  {'' if number else 'logs:':10} {line}")


def _phase(view: View) -> str:
    if view.state is None:
        return "unknown" if view.trouble else "never ran"
    if view.target.suspend or is_suspended(view.state, view.now):
        return "suspended"
    state, rollout = view.state.status, view.state.rollout
    if state.phase == ROLLING and rollout:
        at, since = now_at(rollout), state.since if rollout.outcome else rollout.started
        return f"rolling out for {span(view.now - seconds_of(since))}" + (f": {at}" if at else "")
    lasts = state.since and state.phase != _WELL
    health = view.state.health
    if state.phase == _WELL and health.state not in ("", HealthState.HEALTHY):
        return f"{state.phase}, {health.state}" + (f" for {ago(health.since, view.now).removesuffix(' ago')}" if health.since else "")
    return f"{state.phase or 'new'}" + (f" for {ago(state.since, view.now).removesuffix(' ago')}" if lasts else "")


def _style(view: View, step: Advice) -> str:
    bad = view.trouble or (view.state is not None and (view.state.status.phase == "failed" or _is_sick(view.state)))
    return "bad" if bad else "warn" if step.urgent else "good"


def _is_sick(state: State) -> bool:
    return state.health.state == HealthState.DEGRADED


def _rows(view: View) -> Iterator[tuple[str, str]]:
    """Yield label and text of every fact worth a line."""
    if view.trouble and view.state:
        yield from (("trouble", line) for line in view.trouble.splitlines())
    if view.lease:
        yield "lease", f"{view.lease.holder}, renewed {view.lease.age:.0f} s ago" + (", a run is asked for" if view.lease.requested else "")
    if view.target.suspend:
        yield "suspended", "in the configuration (anneal.yaml), until it says `suspend: false`"
    if view.state:
        yield from _commit_rows(view.state, view.now)
        yield from _rollout_rows(view.state, view.now)
        yield from _health_rows(view.state, view.now)
        yield from _people_rows(view.state, view.now)
        yield from _status_rows(view.state, view.now)
        yield from _leftover_rows(view.state, view.now)


def _commit_rows(state: State, now: float) -> Iterator[tuple[str, str]]:
    if state.commit:
        run = next((run for run in state.history if run.commit == state.commit and run.subject), None)
        yield "commit", f"{state.commit[:12]}" + (f"  {run.subject} ({run.author}), {ago(run.started, now)}" if run else "")
    if state.history:
        yield "last run", run_text(state.history[0], now)
    if state.attempt:
        yield "attempt", f"{state.attempt.commit[:12]}, open for {ago(state.attempt.since, now).removesuffix(' ago')}"


def _rollout_rows(state: State, now: float) -> Iterator[tuple[str, str]]:
    """Sum up the newest rollout; a failed or unfinished one with what its steps say. `anneal rollout` has the whole tree."""
    if state.rollout:
        yield "rollout", summed(state.rollout, now)
        yield from (("", told(step)) for step in state.rollout.steps if phase_of(step) in (UNDER_WAY, FAILED))


def _health_rows(state: State, now: float) -> Iterator[tuple[str, str]]:
    """Tell what is waited for since when, and what isn't healthy, but for what the failure tells below."""
    failed_early = state.status.phase == "failed" and state.status.who == "author"
    if state.waiting and (state.waiting.over or not failed_early):
        ended = "; its time is over, so each tick looks once more" if state.waiting.over else ""
        yield "waiting", f"for {state.waiting.what}, {ago(state.waiting.since, now).removesuffix(' ago')} so far{ended}"
    told = state.status.message if state.status.phase == "failed" else ""
    left = [line for line in state.status.unhealthy if line not in told]
    yield from (("" if number else "unhealthy", line) for number, line in enumerate(left[:_SHOWN]))
    yield from _more(len(left))
    worst = [line for line in state.health.worst if not any(line in each for each in (told, *left))]
    yield from (("" if number else str(state.health.state), line) for number, line in enumerate(worst))
    yield from (("" if number else "note", line) for number, line in enumerate(state.health.notes))


def run_text(run: Run, now: float) -> str:
    """Return one run in a line; why a request was refused, or what interrupted or overtook a wait, stands nowhere else."""
    times = f" ({run.times} times, last {ago(run.last, now)})" if run.times > 1 else ""
    by = f" by {run.actor}" if run.actor else ""
    said = " ".join(run.message.splitlines()) if run.outcome in _EXPLAINED else reports.counted(run.counts)
    return f"{run.outcome}, {run.trigger}{by} {ago(run.started, now)}, {run.duration:.1f} s: {said}{times}"


def _people_rows(state: State, now: float) -> Iterator[tuple[str, str]]:
    if state.suspend and is_suspended(state, now):
        end = f", ends {until(state.suspend.until, now)}" if state.suspend.until else ""
        yield "suspended", f"by {state.suspend.by} {ago(state.suspend.at, now)}{end}: {state.suspend.reason or 'no reason given'}"
    if state.held:
        yield "held", f"{state.held.id} at {state.held.commit[:12]}, {ago(state.held.since, now)}"
        yield from (("", reason) for reason in state.held.reasons)
        yield from (("", f"{action} {name}") for action, name, _ in state.held.changes[:_SHOWN])
        yield from _more(len(state.held.changes))
    if state.pin:
        yield "pinned", pinned_text(state, now)


def _status_rows(state: State, now: float) -> Iterator[tuple[str, str]]:
    status = state.status
    if status.phase in ("failed", "pruning"):
        label = "failing" if status.phase == "failed" else "pruning"
        yield from (((label if not number else ""), line) for number, line in enumerate(status.message.splitlines()))
    if status.next_try:
        yield "next try", f"{until(status.next_try, now)}, after {many(status.failures, 'failure')}"


def _leftover_rows(state: State, now: float) -> Iterator[tuple[str, str]]:
    for drift in state.drift[:_SHOWN]:
        yield (
            "drift",
            f"{drift.identity} {drift.path}: {drift.live or '(none)'} → {drift.declared or '(none)'} (live by {drift.manager or '?'})",
        )
    yield from _more(len(state.drift))
    for orphan in state.orphans[:_SHOWN]:
        left = f", left to {orphan.sibling}" if orphan.sibling else ""
        yield "orphan", f"{orphan.identity}{left}, seen first {ago(orphan.since, now)}"
    yield from _more(len(state.orphans))


def _more(number: int) -> Iterator[tuple[str, str]]:
    if number > _SHOWN:
        yield "", f"and {number - _SHOWN} more; -o json has all"
