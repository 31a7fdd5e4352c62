"""`anneal plan`: a dry run. It writes nothing, not even to the state."""

from __future__ import annotations

import click

from handler.cli import differences, reports
from handler.cli.options import command, target_argument
from handler.cli.running import run
from handler.cli.session import Session, local_user
from handler.model.event import Job

DIFFERS = 2


@command()
@target_argument
@click.option("--commit", metavar="SHA", default="", help="Plan this commit instead of the head.")
@click.option("--no-prune", is_flag=True, help="Plan without deleting anything.")
@click.option("--exit-code", is_flag=True, help="Exit with 2 when something would change.")
def plan(session: Session, target: str | None, commit: str, no_prune: bool, exit_code: bool) -> int:
    """Show what a run of TARGET would change; change nothing.

    Fields are shown live → declared, with the manager that owns them live. Values of Secrets are masked.
    """
    name = session.target(target).name
    job = Job(name, "oneoff", commit=commit, force=True, dry_run=True, prune=not no_prune, actor=local_user())
    ended = run(session, job, f"planning {name}")
    if ended.plan is None:
        return reports.result(session.output, ended)
    if session.output.as_json:
        session.output.document(reports.plan_facts(ended.plan))
    else:
        differences.show(session.output, ended.plan)
    return DIFFERS if exit_code and ended.plan.writes else reports.DONE_CODE
