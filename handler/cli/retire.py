"""`anneal retire`: ends a target that isn't configured any more, or what one has in a namespace that left its whitelist.

It works by the record alone. All of it is shown with its counts, then asked. Without a configuration the flags, or their defaults, say
where the record is. Of a template all instances that have a record end (`retire_template`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from handler.app.retiring import DeclaredClaims, exclusive_notes, instances_of, retire_of
from handler.cli import reports, retire_template
from handler.cli.retire_guards import RetireRequest, is_agreed, is_meant, place, refuse_configured, refuse_living, refuse_strangers
from handler.cli.retire_report import facts, print_done, show, summary
from handler.cli.run_job import stoppable
from handler.cli.session import Session
from handler.config.load import ConfigNotFound
from handler.config.settings import Settings, Target
from handler.engine.retire import Retire, Retirement
from handler.engine.run.errors import EndUnsure
from handler.model.advice import advice
from handler.model.errors import AccessDenied
from handler.model.instance import is_instance
from handler.model.names import STATE_NAMESPACE
from handler.model.numbers import many


def retire(session: Session, *, prune: bool | None, **flags: Any) -> int:
    """Delete or let go of what a target has, then its record. `flags`: the other fields of RetireRequest."""
    if prune is None:
        raise click.UsageError("pass --prune to delete what it has, or --keep to let go of it")
    request = RetireRequest(prune=prune, **flags)
    if request.kinds and not prune:
        raise click.UsageError("--kind goes with --prune")
    before, settings = _settings(session), _settings(session, request.state_namespace, request.installation)
    session.settings = settings
    configured = settings.target(request.target) if before.state_namespace == settings.state_namespace else None  # else another record
    configured = configured if configured and is_meant(session, configured) else None
    refuse_configured(settings, configured, request)
    if is_instance(request.target):
        refuse_living(session, request.target)
    session.beside = settings.targets  # what they declare by now isn't deleted, nor left to what they delete
    if prune and settings.targets:
        session.sandbox.start()
    where = place(settings, session, request.target, configured)
    try:
        instances = [] if configured else _instances(session, where)
        if instances:
            return retire_template.retire(session, request, where, instances, before)
        return _retire_one(session, request, where, before, is_configured=configured is not None)
    except EndUnsure as unsure:  # raised before the first write
        then = "{text}; then, for nothing was changed: {text}"
        raise EndUnsure(*(replace(each, fix=advice(then, each.fix, request.typed)) for each in unsure.problems)) from None


def _settings(session: Session, state_namespace: str = "", installation: str = "") -> Settings:
    """Return the configuration with what the flags say otherwise; without one the defaults."""
    try:
        found = session.settings
    except ConfigNotFound:
        found = Settings((), state_namespace=STATE_NAMESPACE)
    changed: dict[str, Any] = {"state_namespace": state_namespace, "installation": installation}
    if installation not in ("", found.installation):
        found = replace(found, installation_from="")
    return replace(found, **{key: value for key, value in changed.items() if value})


def _instances(session: Session, where: Target) -> Sequence[Target]:
    """Return the recorded instances of a target that isn't configured any more. Raises EndUnsure: it may be a template, unseen."""
    try:
        return instances_of(session.handler, where)
    except AccessDenied as denied:
        state = session.handler.store(where).read().state
        if state and state.fresh:  # as the record of a template is
            seen = f"whether it is a template, and has instances still, can't be seen: {denied.problems[0].message}"
            raise EndUnsure.of(
                f"target {where.name}", seen, fix=denied.problems[0].fix or "grant list on the records' ConfigMaps"
            ) from None
        session.output.line(f"whether it was a template, and has instances still, can't be seen: {denied.problems[0].message}", "warn")
        return []


def _retire_one(session: Session, request: RetireRequest, where: Target, written: Settings, *, is_configured: bool) -> int:
    output, target = session.output, request.target
    claimed = DeclaredClaims(session.handler, written)
    asked = retire_of(
        session.handler, where, prune=request.prune, kinds=request.kinds, namespace=request.namespace, written=written, claimed=claimed
    )
    with output.working(f"looking at what {target} has"):
        shown = asked.look()
    refuse_strangers(request, asked, shown, is_configured=is_configured)
    notes = [*summary(shown, request.namespace), *exclusive_notes(session.handler, written, where, shown.staying)]
    what = f"what {target} has in {request.namespace}" if request.namespace else f"{target}, and its record"
    agreed = is_agreed(session, request, f"Retire {what}", [shown], lambda: show(output, shown, notes))
    if request.dry_run:
        return _only_shown(session, target, asked, shown, notes)
    if not agreed:
        output.line("nothing was changed", "warn")
        return reports.FAILED
    claimed.forget()  # heads may have moved on while a person read
    return _carried_out(session, request, asked, shown)


def _only_shown(session: Session, name: str, asked: Retire, shown: Retirement, notes: Sequence[str]) -> int:
    output = session.output
    if output.as_json:
        going, staying = ([str(change.identity) for change in changes] for changes in (shown.going, shown.staying))
        found = {"target": name, "namespace": asked.namespace, "repository": shown.state.repository}
        output.document({**found, "toDelete": going, "toLetGo": staying, "notes": [*notes]})
    output.line("nothing was changed: it was only shown", "good")
    return reports.DONE_CODE


def _carried_out(session: Session, request: RetireRequest, asked: Retire, shown: Retirement) -> int:
    output, name = session.output, request.target
    asked.wrote = lambda changes: print_done(output, changes)
    with stoppable(output.note) as stop, output.working(f"retiring {name}"):
        done = asked.carry_out(shown, stop)
    if output.as_json:
        output.document(facts(name, done, asked))
    deleted = sum(change.removes for change in done.done)
    counts = f"{deleted} deleted, {len(done.done) - deleted} let go"
    if done.left:
        again = output.complete(request.typed)
        output.line(f"{name}: {counts}; {many(len(done.left), 'object')} of it left; to go on: {again}", "warn")
        return reports.FAILED
    end = f"nothing of it is left in {asked.namespace}" if asked.namespace else "its record is gone"
    output.line(f"{name}: retired: {counts}; {end}", "good")
    return reports.DONE_CODE
