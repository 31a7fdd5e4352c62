"""`anneal rollback`: go back to an earlier deployment, and stay there until `anneal unpin` or a commit that changes the target."""

from __future__ import annotations

from dataclasses import replace

import click

from handler.cli.confirm import follow
from handler.cli.plan import show
from handler.cli.run_job import run
from handler.cli.session import Session, local_user
from handler.config.settings import Target
from handler.model.event import Job

WHOLE = 40
"""Digits of a commit's id."""


def rollback(session: Session, target: str | None, commit: str, dry_run: bool, yes: bool) -> int:
    """Deploy what TARGET was on before, whole, and pin it."""
    chosen = session.target(target)
    job = Job(chosen.name, "oneoff", commit=_whole(session, chosen, commit.lower()), rollback=True, actor=local_user())
    if dry_run:
        return show(session, run(session, replace(job, dry_run=True), f"planning {chosen.name}"))
    return follow(session, lambda: run(session, job, f"rolling {chosen.name} back"), yes=yes)


def _whole(session: Session, target: Target, commit: str) -> str:
    """Return the one commit of a target's history that begins so, as `anneal history` shows it; a whole id is left as it is."""
    if not commit or len(commit) >= WHOLE:
        return commit
    from handler.engine.run.transitions import deployed  # noqa: PLC0415 - usage errors don't wait for it

    state = session.handler.store(target).read().state
    known = sorted(each for each in deployed(state) if each.startswith(commit)) if state else []
    if len(known) != 1:
        seen = f"{len(known)} commits of its history begin so" if known else "none of its history begins so"
        raise click.UsageError(f"--to {commit}: {seen}; give the whole id of 40 digits")
    return known[0]
