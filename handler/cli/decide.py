"""What a person decides about the next runs: `approve`, `unpin`, `suspend`, `resume`, `rollback`, `promote`, `retarget`, `unlock`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

import click

from handler.app import pause
from handler.cli import reports
from handler.cli.apply import show
from handler.cli.retire_guards import is_same
from handler.cli.run_job import follow, retry, run
from handler.cli.session import Session, local_user
from handler.config.settings import Target
from handler.engine.run.errors import RequestRefused
from handler.engine.run.former_record import refuse_renamed
from handler.engine.run.transitions import deployed
from handler.model.advice import advice
from handler.model.errors import AnnealError, Problem, StateInvalid
from handler.model.event import Job
from handler.state.record import HeldPlan, State

WHOLE = 40  # digits of a commit's id


# --- approve, unpin
def approve(session: Session, target: str | None, held_id: str | None, yes: bool) -> int:
    """Allow exactly the deletions that TARGET holds under ID, and run it."""
    if target and held_id is None and not session.several and session.settings.target(target) is None:
        target, held_id = None, target  # the only target may be left out
    chosen = session.target(target)
    held = _held(session, chosen)
    if held_id not in (None, held.id):
        seen = f"can't approve {held_id}; held now: {held.id}"
        raise RequestRefused.of(f"target {chosen.name}", seen, fix=advice("anneal status {} shows what that is", chosen.name))
    if held_id is None and not _agreed(session, chosen, held, yes):
        session.output.line("nothing was approved", "warn")
        return reports.FAILED
    return _replayed(session, Job(chosen.name, "replay", approve=held.id, actor=local_user()))


def _agreed(session: Session, target: Target, held: HeldPlan, yes: bool) -> bool:
    if yes:
        return True
    if not session.output.interactive:
        raise click.UsageError(advice("name what is approved: anneal approve {} {}, or pass -y", target.name, held.id))
    for reason in held.reasons:
        session.output.line(reason, "warn")
    for action, name, _ in held.changes:
        session.output.line(f"  {action:8} {name}", "bad")
    return session.output.confirm("Allow exactly that?")


def _held(session: Session, target: Target) -> HeldPlan:
    state = session.handler.store(target).read().state
    if state is None or state.held is None:
        raise RequestRefused.of(f"target {target.name}", "nothing is held", fix=advice("anneal status {}", target.name))
    return state.held


def unpin(session: Session, target: str | None) -> int:
    """Follow the branch of TARGET again, and run it."""
    return _replayed(session, Job(session.target(target).name, "replay", unpin=True, actor=local_user()))


def _replayed(session: Session, job: Job) -> int:
    return reports.result(session.output, run(session, job, f"applying {job.target}"), retry=retry(session))


# --- suspend, resume
def suspend(session: Session, target: str | None, every: bool, reason: str, until: str) -> int:
    """Pause TARGET: no run writes until `anneal resume`, one under way stops before its next stage."""
    try:
        begun = pause.pause_of(local_user(), reason, until)
    except ValueError as error:
        raise click.UsageError(f"--until {until}: {error}") from None
    return _each(session, target, every, lambda chosen: pause.suspend(session.handler, chosen, begun))


def resume(session: Session, target: str | None, every: bool) -> int:
    """End the pause of TARGET; its next run goes on, at once with `anneal apply`."""
    return _each(session, target, every, partial(pause.resume, session.handler))


def _each(session: Session, name: str | None, every: bool, act: Callable[[Target], str]) -> int:
    if every and name:
        raise click.UsageError("--all and TARGET exclude each other")
    targets = session.all_or(None) if every else (session.target(name),)
    output, rows, code = session.output, [], reports.DONE_CODE
    for target in targets:
        found: tuple[Problem, ...] = ()
        try:
            text = act(target)
        except AnnealError as error:
            reports.problems(output, error.problems)
            text, code, found = "failed", reports.FAILED, error.problems
        rows.append({"target": target.name, "outcome": text, "problems": found})
        output.line(f"{target.name}: {text}", "good" if text != "failed" else "bad")
    if output.as_json:
        output.document({"targets": rows})
    return code


# --- rollback
def rollback(session: Session, target: str | None, commit: str, dry_run: bool, yes: bool) -> int:
    """Deploy what TARGET was on before, whole, and pin it until `anneal unpin` or a commit that changes the target."""
    chosen = session.target(target)
    job = Job(chosen.name, "oneoff", commit=_whole(session, chosen, commit.lower()), rollback=True, actor=local_user())
    if dry_run:
        return show(session, run(session, replace(job, dry_run=True), f"planning {chosen.name}"))
    return follow(session, lambda: run(session, job, f"rolling {chosen.name} back"), yes=yes)


def _whole(session: Session, target: Target, commit: str) -> str:
    """Return the one commit of a target's history that begins so, as `anneal history` shows it; a whole id is left as it is."""
    if not commit or len(commit) >= WHOLE:
        return commit
    state = session.handler.store(target).read().state
    known = sorted(each for each in deployed(state) if each.startswith(commit)) if state else []
    if len(known) != 1:
        seen = f"{len(known)} commits of its history begin so" if known else "none of its history begins so"
        raise click.UsageError(f"--to {commit}: {seen}; give the whole id of 40 digits")
    return known[0]


# --- promote
def promote(session: Session, target: str | None, commit: str, force: bool, dry_run: bool, yes: bool) -> int:
    """Deploy what the targets that TARGET follows have, without waiting until it has soaked; it is pinned to nothing."""
    chosen = session.target(target)
    job = Job(chosen.name, "oneoff", commit=commit.lower(), force=force, promote=True, actor=local_user())
    if dry_run:
        return show(session, run(session, replace(job, dry_run=True), f"planning {chosen.name}"))
    return follow(session, lambda: run(session, job, f"promoting to {chosen.name}"), yes=yes)


# --- retarget, unlock
def retarget(session: Session, target: str | None, repository: str, yes: bool) -> int:
    """Accept the repository, installation and cluster that TARGET's configuration names now.

    Raises RequestRefused: the record may be another configuration's, and its repository isn't named.
    """
    chosen = session.target(target)
    handler, output = session.handler, session.output
    store = handler.store(chosen)
    state = store.read().state
    if state is None:
        raise StateInvalid.of(f"target {chosen.name}", "has no record here: it never ran", fix=advice("anneal apply {}", chosen.name))
    refuse_renamed(state, store.namespace)
    wanted: dict[str, Any] = {
        "repository": chosen.repository.url,
        "installation": handler.settings.installation,
        "cluster_uid": handler.objects(chosen).cluster_uid(),
    }
    moved = {} if state.fresh else {key: [getattr(state, key), value] for key, value in wanted.items() if getattr(state, key) != value}
    for key, (was, becomes) in moved.items():
        output.line(f"{key.replace('_', ' ')}: {was} → {becomes}")
    if moved and not _may_take(session, state, moved, repository, yes=yes):
        output.line(f"nothing was changed{'' if output.interactive else '; -y accepts it without asking'}", "warn", err=True)
        return reports.FAILED

    def accept(now: State) -> State:
        # Another repository means that what was read no longer says anything: the next run renders and plans fully.
        status = replace(now.status, refusal=None)
        return replace(now, **wanted, status=status, reads="", settings="", held=None, approval=None, pin=None)

    if moved:
        store.update(accept)
    output.line(
        advice("{text}: retargeted; next: anneal plan {}", chosen.name, chosen.name) if moved else f"{chosen.name}: nothing differs", "good"
    )
    if output.as_json:
        output.document({"target": chosen.name, "accepted": moved})
    return reports.DONE_CODE


def _may_take(session: Session, state: State, moved: Collection[str], repository: str, *, yes: bool) -> bool:
    """Return whether a record may be taken over: `-y` was given, or a person agrees; it is known to be this configuration's own."""
    output, question = session.output, f"Let {state.target} take that over, with all its objects?"
    if "repository" not in moved or not session.settings.is_shared or is_same(repository, state.repository):
        return yes or (output.interactive and output.confirm(question))
    if yes or not output.interactive:
        seen = f"installation {state.installation} is no name of its own: the record may be another configuration's, which runs it"
        raise RequestRefused.of(f"target {state.target}", seen, fix="add --repository URL, the record's, as it stands above")
    return is_same(output.ask(f"{question} Another configuration may have it: type the record's repository", ""), state.repository)


def unlock(session: Session, target: str | None) -> int:
    """Free the Lease of TARGET when its holder doesn't renew it; watches for one Lease duration at most."""
    chosen = session.target(target)
    lock = session.handler.lock(chosen)
    with session.output.working(f"watching the Lease of {chosen.name}"):
        holder = lock.force_unlock()
    if session.output.as_json:
        session.output.document({"target": chosen.name, "freed": holder})
    session.output.line(f"{chosen.name}: freed from {holder}" if holder else f"{chosen.name}: it was free", "good")
    return reports.DONE_CODE
