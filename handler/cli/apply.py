"""`anneal plan`, `anneal apply` and `anneal prune`: a run, or a dry run, that a person or a pipeline asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import click

from handler.cli import diff, reports
from handler.cli.filenames import again, approving, from_files, refuse_unasked
from handler.cli.run_job import follow, retry, run, run_as
from handler.cli.session import Session, local_user
from handler.config.settings import Target
from handler.model.advice import advice
from handler.model.event import Job
from handler.model.result import Result
from handler.plan import missing_settings

DIFFERS = 2


@from_files()
def plan(session: Session, target: str | None, commit: str, no_prune: bool, with_prune: bool, exit_code: bool) -> int:
    """Show what a run of TARGET would change, or one of files; change nothing."""
    name, prune = session.target(target).name, prunes(session, no_prune=no_prune, with_prune=with_prune)
    session.sandbox.weak = True  # it only shows
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
    """Print the plan of a dry run, or why there is none; return the exit code. `approves`: see `approving`."""
    if planned.plan is None:
        return reports.result(session.output, planned, retry=retry(session))
    if session.output.as_json:
        session.output.document(reports.plan_facts(planned.plan))
    else:
        held = planned.plan.hold
        diff.show(session.output, planned.plan, approves(held.id) if approves and held else "")
    return reports.DONE_CODE


@from_files()
def apply(
    session: Session, *, target: str | None, commit: str, force: bool, no_prune: bool, yes: bool, approve: str, with_prune: bool
) -> int:
    """Bring the cluster to what git declares for TARGET, or to what files declare."""
    refuse_unasked(session, yes=yes)
    chosen = session.target(target)
    prune = prunes(session, no_prune=no_prune, with_prune=with_prune)
    job = Job(chosen.name, "oneoff", commit=commit, force=force or not commit, prune=prune, approve=approve, actor=local_user())
    approves = approving(session, prunes=with_prune)
    return follow(session, lambda: run(session, job, f"applying {chosen.name}"), yes=yes or bool(approve), approves=approves)


@from_files()
def prune(session: Session, target: str | None, yes: bool, approve: str, dry_run: bool) -> int:
    """Delete what TARGET's git no longer declares, also where its runs don't prune; its guards hold as ever."""
    if not dry_run:
        refuse_unasked(session, yes=yes or bool(approve))
    chosen, session.again = session.target(target), again()
    pruning = replace(chosen, prune=replace(chosen.prune, enabled=True), compat="none" if chosen.compat == "locutus" else chosen.compat)
    job = Job(chosen.name, "oneoff", force=True, dry_run=dry_run, approve=approve, actor=local_user())
    approves = approving(session, prunes=True) or _allows(session, chosen, held=not dry_run)
    if dry_run:
        return show(session, run_as(session, pruning, job, f"planning {chosen.name}"), approves)
    return follow(session, lambda: run_as(session, pruning, job, f"pruning {chosen.name}"), yes=yes or bool(approve), approves=approves)


def _allows(session: Session, target: Target, *, held: bool) -> Callable[[str], str] | None:
    """Return what makes the commands that allow what `anneal prune` would delete; None: `anneal approve` does. `held`: a run holds it."""
    if target.prunes_undeclared:
        return None
    first = () if held else (advice("anneal prune {}", target.name),)

    def allows(name: str) -> str:
        both = (*first, missing_settings.approving(target.name, name, prune=True))
        return ", then ".join(map(session.output.complete, both))

    return allows
