"""`anneal rollback`: go back to an earlier deployment, and stay there until `anneal unpin` or a commit that changes the target."""

from __future__ import annotations

from dataclasses import replace

import click

from handler.cli import reports
from handler.cli.apply import agreed, finish, show
from handler.cli.options import command, target_argument, yes_option
from handler.cli.running import run
from handler.cli.session import Session, local_user
from handler.config.settings import Target
from handler.model.event import Job

WHOLE = 40
"""Digits of a commit's id."""


@command()
@target_argument
@click.option("--to", "commit", metavar="SHA", default="", help="Go to this commit of its history instead of the one before.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@yes_option
def rollback(session: Session, target: str | None, commit: str, dry_run: bool, yes: bool) -> int:
    """Deploy what TARGET was on before, whole, and pin it.

    After a rollout that failed or hangs that is the commit it was on; else the newest other deployment that succeeded. Commits that change
    nothing of the target keep the pin; `anneal unpin` follows the branch again.
    """
    chosen = session.target(target)
    job = Job(chosen.name, "oneoff", commit=_whole(session, chosen, commit.lower()), rollback=True, actor=local_user())
    if dry_run or (not yes and session.output.interactive):
        planned = run(session, replace(job, dry_run=True), f"planning {chosen.name}")
        if dry_run or planned.plan is None:
            return show(session, planned)
        session.output.note(f"{chosen.name} goes back to {planned.commit}")
        if not planned.plan.hold and not agreed(session, planned.plan):
            session.output.line("nothing was changed", "warn")
            return reports.FAILED
        job = replace(job, commit=planned.commit)
    return finish(session, run(session, job, f"rolling {chosen.name} back"))


def _whole(session: Session, target: Target, commit: str) -> str:
    """Return the one commit of a target's history that begins so, as `anneal history` shows it; a whole id is left as it is."""
    if not commit or len(commit) >= WHOLE:
        return commit
    from handler.run.state_after import deployed  # noqa: PLC0415 - usage errors don't wait for it

    state = session.handler.store(target).read().state
    known = sorted(each for each in deployed(state) if each.startswith(commit)) if state else []
    if len(known) != 1:
        seen = f"{len(known)} commits of its history begin so" if known else "none of its history begins so"
        raise click.UsageError(f"--to {commit}: {seen}; give the whole id of 40 digits")
    return known[0]
