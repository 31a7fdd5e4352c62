"""`anneal dlq list` and `anneal dlq redrive`: what came to no end however often it was tried, and asking for it again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from handler.app.times import ago
from handler.cli import reports
from handler.cli.session import Session
from handler.model.advice import advice
from handler.queues.dead_letters import DeadLetters, Letter
from handler.queues.pending import Work
from handler.queues.sqs import URL, SqsQueue, queue_url
from handler.queues.sqs_client import QueueInvalid
from handler.state.record_format import stamp

_HEADS = ("SINCE", "TARGET", "ASKED", "BY", "COMMIT", "RUN", "TRIED")


def dlq(session: Session, what: str, target: str | None, run: str | None, drop_unreadable: bool) -> int:
    """List what ended as dead letters, or put it into the queue again."""
    if drop_unreadable and what != "redrive":
        raise click.UsageError("--drop-unreadable goes with redrive")
    names = {session.target(target).name} if target else {each.name for each in session.settings.targets}
    letters = _letters(session)

    def wanted(work: Work) -> bool:
        return work.job.target in names and (run == work.run or (run is None and not _decides(work)))

    if what == "redrive":
        return _redrive(session, letters, wanted, run, drop_unreadable=drop_unreadable)
    return _list(session, letters, lambda work: (target is None or work.job.target in names) and run in (None, work.run))


def _letters(session: Session) -> DeadLetters:
    url = queue_url(session.settings, session.environ)
    if not url:
        raise QueueInvalid.of("queue", "none is configured", fix=f"set {URL} or `queue.sqs.url`")
    return DeadLetters(SqsQueue(url))


def _list(session: Session, letters: DeadLetters, wanted: Callable[[Work], bool]) -> int:
    found = letters.look()
    chosen = [letter for letter in found.found if letter.work is None or wanted(letter.work)]
    output = session.output
    if output.as_json:
        output.document({"queue": letters.name, "waiting": found.waiting, "letters": [_facts(letter) for letter in chosen]})
        return reports.DONE_CODE
    if chosen:
        output.table(_HEADS, [_row(letter) for letter in chosen])
    more = found.waiting - len(found.found)
    output.line(f"{letters.name}: {found.waiting or 'no'} dead letter{'' if found.waiting == 1 else 's'}")
    if more > 0:
        output.line(f"{more} more can't be seen now: of one target ten are shown, and others may be looking at them", "dim")
    return reports.DONE_CODE


def _redrive(session: Session, letters: DeadLetters, wanted: Callable[[Work], bool], run: str | None, *, drop_unreadable: bool) -> int:
    done = letters.redrive(wanted, drop_unreadable=drop_unreadable)
    output = session.output
    if output.as_json:
        output.document({name: [_facts(letter) for letter in getattr(done, name)] for name in _DONE})
    for name, doing in _DONE.items():
        for letter in getattr(done, name):
            output.line(f"{doing} {_named(letter)}{_way_out(letter, run) if name == 'kept' else ''}", "" if name == "again" else "warn")
    output.line(f"{letters.name}: {len(done.again)} asked for again, {len(done.dropped)} deleted, {len(done.kept)} left")
    if run and not done.again:
        output.note(f"{letters.name}: {_missed(run, done.kept)}")
        return reports.FAILED
    return reports.DONE_CODE


def _decides(work: Work) -> bool:
    return not {"commit", "force", "approve", "unpin", "rollback"}.isdisjoint(work.job.acts)


def _way_out(letter: Letter, run: str | None) -> str:
    by_name = run is None and letter.work and _decides(letter.work)
    return advice("; if it is still wanted: anneal dlq redrive --run {}", letter.work.run) if by_name and letter.work else ""


def _missed(run: str, kept: Sequence[Letter]) -> str:
    seen = next((letter.work.job.target for letter in kept if letter.work and letter.work.run == run), "")
    if seen:
        return f"{run} asks for {seen}, which isn't configured here, or isn't the --target"
    hidden = "of one target ten are shown, and others may be looking at them; `anneal dlq list` counts them"
    return f"{run} isn't among the {len(kept)} that can be seen now: {hidden}"


_DONE = {"again": "asked for again:", "dropped": "deleted, unreadable:", "kept": "left:"}


def _named(letter: Letter) -> str:
    if letter.work is None:
        return f"message {letter.received.id}, which can't be read: {letter.trouble}"
    job = letter.work.job
    return f"{job.target}, {_asked(letter.work)} as {letter.work.run}"


def _asked(work: Work) -> str:
    return " ".join((work.job.trigger, *work.job.acts))


def _row(letter: Letter) -> tuple[str, ...]:
    since, tried = ago(stamp(letter.received.sent), time.time()), str(letter.received.count)
    if letter.work is None:
        return since, letter.received.group, f"unreadable: {letter.trouble}", "", "", letter.received.id, tried
    job = letter.work.job
    return since, job.target, _asked(letter.work), job.actor, (job.commit or job.hint)[:12], letter.work.run, tried


def _facts(letter: Letter) -> dict[str, Any]:
    received = letter.received
    found: dict[str, Any] = {"message": received.id, "since": stamp(received.sent), "received": received.count}
    if letter.work is None:
        return found | {"target": None, "group": received.group, "unreadable": letter.trouble}
    job = letter.work.job
    found |= {"target": job.target, "trigger": job.trigger, "acts": list(job.acts), "actor": job.actor, "run": letter.work.run}
    return found | {"commit": job.commit, "hint": job.hint, "deliveries": [delivery.id for delivery in job.deliveries]}
