"""`anneal approve` and `anneal unpin`: a person's word goes into the record, and the target runs."""

from __future__ import annotations

import click

from handler.cli import reports
from handler.cli.run_job import retry, run
from handler.cli.session import Session, local_user
from handler.config.settings import Target
from handler.engine.run.errors import RequestRefused
from handler.model.event import Job
from handler.state.record import HeldPlan


def approve(session: Session, target: str | None, held_id: str | None, yes: bool) -> int:
    """Allow exactly the deletions that TARGET holds under ID, and run it."""
    if target and held_id is None and not session.several and session.settings.target(target) is None:
        target, held_id = None, target  # the only target may be left out
    chosen = session.target(target)
    held = _held(session, chosen)
    if held_id not in (None, held.id):
        seen = f"can't approve {held_id}; held now: {held.id}"
        raise RequestRefused.of(f"target {chosen.name}", seen, fix=f"anneal status {chosen.name} shows what that is")
    if held_id is None and not _agreed(session, chosen, held, yes):
        session.output.line("nothing was approved", "warn")
        return reports.FAILED
    job = Job(chosen.name, "replay", approve=held.id, actor=local_user())
    return reports.result(session.output, run(session, job, f"applying {chosen.name}"), retry=retry(session))


def _agreed(session: Session, target: Target, held: HeldPlan, yes: bool) -> bool:
    """Show what is held and ask, where a person can be asked."""
    if yes:
        return True
    if not session.output.interactive:
        raise click.UsageError(f"name what is approved: anneal approve {target.name} {held.id}, or pass -y")
    for reason in held.reasons:
        session.output.line(reason, "warn")
    for action, name, _ in held.changes:
        session.output.line(f"  {action:8} {name}", "bad")
    return session.output.confirm("Allow exactly that?")


def _held(session: Session, target: Target) -> HeldPlan:
    state = session.handler.store(target).read().state
    if state is None or state.held is None:
        raise RequestRefused.of(f"target {target.name}", "nothing is held", fix=f"anneal status {target.name}")
    return state.held


def unpin(session: Session, target: str | None) -> int:
    """Follow the branch of TARGET again, and run it."""
    chosen = session.target(target)
    job = Job(chosen.name, "replay", unpin=True, actor=local_user())
    return reports.result(session.output, run(session, job, f"applying {chosen.name}"), retry=retry(session))
