"""`anneal approve` and `anneal unpin`: a person's word goes into the record, and the target runs."""

from __future__ import annotations

import click

from handler.cli import reports
from handler.cli.options import command, target_argument, yes_option
from handler.cli.running import run
from handler.cli.session import Session, local_user
from handler.config.settings import Target
from handler.model.errors import PlanRefused
from handler.model.event import Job
from handler.state.record import Held


@command()
@target_argument
@click.argument("held_id", metavar="[ID]", required=False)
@yes_option
def approve(session: Session, target: str | None, held_id: str | None, yes: bool) -> int:
    """Allow exactly the deletions that TARGET holds under ID, and run it.

    Without ID a person at a terminal is shown what is held and asked; elsewhere -y allows whatever is held now.
    """
    if target and held_id is None and not session.several and session.settings.target(target) is None:
        target, held_id = None, target  # the only target may be left out
    chosen = session.target(target)
    if held_id is None:
        held_id = _asked(session, chosen, yes)
    if held_id is None:
        session.output.line("nothing was approved", "warn")
        return reports.FAILED
    job = Job(chosen.name, "replay", approve=held_id, actor=local_user())
    return reports.result(session.output, run(session, job, f"applying {chosen.name}"))


def _asked(session: Session, target: Target, yes: bool) -> str | None:
    """Return the id of what is held, if the person says so."""
    held = _held(session, target)
    if yes:
        return held.id
    if not session.output.interactive:
        raise click.UsageError(f"name what is approved: anneal approve {target.name} {held.id}, or pass -y")
    for reason in held.reasons:
        session.output.line(reason, "warn")
    for action, name, _ in held.changes:
        session.output.line(f"  {action:8} {name}", "bad")
    return held.id if session.output.confirm("Allow exactly that?") else None


def _held(session: Session, target: Target) -> Held:
    state = session.handler.store(target).read().state
    if state is None or state.held is None:
        raise PlanRefused.of(f"target {target.name}", "nothing is held", fix=f"anneal status {target.name}")
    return state.held


@command()
@target_argument
def unpin(session: Session, target: str | None) -> int:
    """Follow the branch of TARGET again, and run it."""
    chosen = session.target(target)
    job = Job(chosen.name, "replay", unpin=True, actor=local_user())
    return reports.result(session.output, run(session, job, f"applying {chosen.name}"))
