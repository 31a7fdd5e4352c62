"""`anneal apply` and `anneal prune`: a run that a person or a pipeline asks for."""

from __future__ import annotations

from dataclasses import replace

from handler.cli.confirm import follow
from handler.cli.filenames import approving, from_files, refuse_unasked
from handler.cli.plan import prunes, show
from handler.cli.run_job import run, run_as
from handler.cli.session import Session, local_user
from handler.model.event import Job


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
def prune(session: Session, target: str | None, yes: bool, dry_run: bool) -> int:
    """Delete what TARGET's git no longer declares, also where its runs don't prune; its guards hold as ever."""
    if not dry_run:
        refuse_unasked(session, yes=yes)
    chosen = session.target(target)
    pruning = replace(chosen, prune=replace(chosen.prune, enabled=True))
    job = Job(chosen.name, "oneoff", force=True, dry_run=dry_run, actor=local_user())
    approves = approving(session, prunes=True)
    if dry_run:
        return show(session, run_as(session, pruning, job, f"planning {chosen.name}"), approves)
    return follow(session, lambda: run_as(session, pruning, job, f"pruning {chosen.name}"), yes=yes, approves=approves)
