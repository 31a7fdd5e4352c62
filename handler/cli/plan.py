"""`anneal plan`: a dry run. It writes nothing, not even to the state."""

from __future__ import annotations

from collections.abc import Callable

import click

from handler.cli import diff, reports
from handler.cli.filenames import approving, from_files
from handler.cli.run_job import run
from handler.cli.session import Session, local_user
from handler.model.event import Job
from handler.model.result import Result

DIFFERS = 2


@from_files()
def plan(session: Session, target: str | None, commit: str, no_prune: bool, with_prune: bool, exit_code: bool) -> int:
    """Show what a run of TARGET would change, or one of files; change nothing."""
    name, prune = session.target(target).name, prunes(session, no_prune=no_prune, with_prune=with_prune)
    job = Job(name, "oneoff", commit=commit, force=True, dry_run=True, prune=prune, actor=local_user())
    ended = run(session, job, f"planning {name}")
    code = show(session, ended, approving(session, prunes=with_prune))
    return DIFFERS if exit_code and ended.plan and ended.plan.writes else code


def prunes(session: Session, *, no_prune: bool, with_prune: bool) -> bool:
    """Whether a run may delete: files only on demand, a target as its settings say. Raises click.UsageError."""
    if with_prune and not session.from_files:
        raise click.UsageError("--prune goes with -f; a configured target prunes as its settings say")
    return with_prune if session.from_files else not no_prune


def show(session: Session, planned: Result, approves: Callable[[str], str] | None = None) -> int:
    """Print the plan of a dry run, or why there is none; return the exit code. `approves`: tells what approves it, as `approving` does."""
    if planned.plan is None:
        return reports.result(session.output, planned)
    if session.output.as_json:
        session.output.document(reports.plan_facts(planned.plan))
    else:
        held = planned.plan.hold
        diff.show(session.output, planned.plan, approves(held.id) if approves and held else "")
    return reports.DONE_CODE
