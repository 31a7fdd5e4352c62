"""`anneal suspend` and `anneal resume`: a person's pause. Runs read it under the Lease and before each stage."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import click

from handler.cli import reports
from handler.cli.session import Session, local_user
from handler.cli.times import moment
from handler.config.settings import Target
from handler.model.errors import AnnealError, Problem
from handler.state.record import State, Suspend
from handler.state.record_format import stamp


def suspend(session: Session, target: str | None, every: bool, reason: str, until: str) -> int:
    """Pause TARGET: no run writes until `anneal resume`, one under way stops before its next stage."""
    now = time.time()
    try:
        end = stamp(moment(until, now)) if until else ""
    except ValueError as error:
        raise click.UsageError(f"--until {until}: {error}") from None
    pause = Suspend(local_user(), reason, end, stamp(now))
    tail = f" until {end}" if end else ""
    return _each(session, target, every, partial(_suspend, session, pause), f"suspended{tail}")


def resume(session: Session, target: str | None, every: bool) -> int:
    """End the pause of TARGET; its next run goes on, at once with `anneal apply`."""
    return _each(session, target, every, partial(_resume, session), "resumed")


def _each(session: Session, name: str | None, every: bool, act: Callable[[Target], str], done: str) -> int:
    """Do it to one target or to all; one that fails doesn't keep the others from it."""
    if every and name:
        raise click.UsageError("--all and TARGET exclude each other")
    targets = session.all_or(None) if every else (session.target(name),)
    output, rows, code = session.output, [], reports.DONE_CODE
    for target in targets:
        found: tuple[Problem, ...] = ()
        try:
            text = act(target) or done
        except AnnealError as error:
            reports.problems(output, error.problems)
            text, code, found = "failed", reports.FAILED, error.problems
        rows.append({"target": target.name, "outcome": text, "problems": found})
        output.line(f"{target.name}: {text}", "good" if text != "failed" else "bad")
    if output.as_json:
        output.document({"targets": rows})
    return code


def _suspend(session: Session, pause: Suspend, target: Target) -> str:
    """Write the pause; a target that never ran gets its first record."""
    handler = session.handler
    store = handler.store(target)
    blank = None
    if store.read().state is None:
        blank = store.blank(handler.objects(target).cluster_uid())
    store.update(lambda state: replace(state, suspend=pause), blank)
    return ""


def _resume(session: Session, target: Target) -> str:
    store = session.handler.store(target)
    state = store.read().state
    stays = "stays suspended: anneal.yaml says `suspend: true`" if target.suspend else ""
    if state is None or state.suspend is None:
        return stays or "was not suspended"

    def without(now: State) -> State:
        return replace(now, suspend=None, status=replace(now.status, refusal=None))  # whoever resumes it means it to be tried

    store.update(without)
    return stays
