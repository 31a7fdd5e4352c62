"""`anneal rollback`: go back to an earlier deployment, and stay there until `anneal unpin` or a commit that changes the target."""

from __future__ import annotations

from dataclasses import replace

import click

from handler.cli import reports
from handler.cli.apply import agreed, finish, show
from handler.cli.options import command, target_argument, yes_option
from handler.cli.running import run
from handler.cli.session import Session, local_user
from handler.model.event import Job


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
    job = Job(chosen.name, "oneoff", commit=commit, rollback=True, actor=local_user())
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
