"""`anneal retire` of a template that isn't configured any more: all of its recorded instances end, then its own record.

Law: each ends as it would alone, by its own record and under its own Lease, in turn. What one is refused or fails by keeps that one, and
the template's own record. What was done isn't repeated by the next try: an instance that has ended has no record.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from handler.app.retiring import DeclaredClaims, exclusive_notes, retire_of
from handler.cli import reports
from handler.cli.output import Output
from handler.cli.retire_guards import RetireRequest, is_agreed, refuse_living, refuse_strangers
from handler.cli.retire_report import facts, print_done, show, summary
from handler.cli.run_job import stoppable
from handler.cli.session import Session
from handler.cluster.parallel import parallel
from handler.config.settings import Settings, Target
from handler.engine.retire import Retire, Retired, Retirement
from handler.model.errors import AnnealError, Busy
from handler.model.numbers import many
from handler.model.plan import Change


@dataclass(slots=True)
class _Member:
    """The template, or one of its instances. `error`: why it stays, `done`: its end, once it was tried."""

    where: Target
    asked: Retire
    shown: Retirement
    error: AnnealError | None = None
    done: Retired | None = None

    @property
    def name(self) -> str:
        return self.where.name

    @property
    def ended(self) -> bool:
        return self.done is not None and self.done.ended


def retire(session: Session, request: RetireRequest, template: Target, instances: Sequence[Target], written: Settings) -> int:
    """Retire these instances, and their template. `written`: see `retire_of`."""
    if request.namespace:
        raise click.UsageError(f"--namespace goes with one target: name an instance of {request.target}, as {instances[0].name}")
    output, claimed = session.output, DeclaredClaims(session.handler, written)
    ask = partial(retire_of, session.handler, prune=request.prune, kinds=request.kinds, written=written, claimed=claimed)
    own = [template] if session.handler.store(template).read().uid else []
    with output.working(f"looking at what {many(len(instances), 'instance')} of {request.target} have"):
        looks = parallel([partial(_looked, session, request, each, ask(each)) for each in (*instances, *own)])
    members = [each for each in looks if isinstance(each, _Member)]
    refused = [each for each in looks if isinstance(each, AnnealError)]
    if not members:
        raise refused[0]
    notes: list[str] = []

    def show_all() -> None:
        notes.extend(_shown(session, request, members, written))
        for error in refused:
            reports.problems(output, error.problems)

    number = many(sum(each.where is not template for each in members), "instance")
    question = f"Retire {request.target}: {number}, and their records"
    agreed = is_agreed(session, request, question, [each.shown for each in members], show_all)
    if request.dry_run:
        return _only_shown(output, request, members, refused, notes)
    if not agreed:
        output.line("nothing was changed", "warn")
        return reports.FAILED
    claimed.forget()  # heads may have moved on while a person read
    return _carried_out(output, request, members, refused)


def _looked(session: Session, request: RetireRequest, where: Target, asked: Retire) -> _Member:
    """Return a target and what would become of it. Raises AnnealError: it stays."""
    refuse_living(session, where.name)
    shown = asked.look()
    refuse_strangers(request, asked, shown)
    return _Member(where, asked, shown)


# --- what is shown
def _shown(session: Session, request: RetireRequest, members: Sequence[_Member], written: Settings) -> list[str]:
    """Print what would become of all of it; return what is said of the whole."""
    output = session.output
    for each in members:
        known = each.shown.state.instance
        output.line(f"{each.name} ({known.identity})" if known else f"{each.name}: its record", "head")
        show(output, each.shown, summary(each.shown) if each.shown.planned.plan.prunes else [])
    going, staying = sum(len(each.shown.going) for each in members), [change for each in members for change in each.shown.staying]
    whole = many(sum(each.shown.planned.plan.live_members for each in members), "live object")
    notes = [f"of {whole} of {request.target} in all, {going} would be deleted, and {len(staying)} would stay, without our marks"]
    alive = [str(each.shown.state.instance.identity) for each in members if each.shown.state.instance]
    few = f"{', '.join(alive[:3])}{' and more' if len(alive) > 3 else ''}"
    notes += [f"the objects that they were deployed for aren't touched: {few}"] if alive else []
    notes += exclusive_notes(session.handler, written, members[0].where, staying)
    for line in notes:
        output.line(line, "warn")
    return notes


def _only_shown(
    output: Output, request: RetireRequest, members: Sequence[_Member], refused: Sequence[AnnealError], notes: Sequence[str]
) -> int:
    if output.as_json:
        looks = [(each.name, each.shown) for each in members]
        parts = [
            {"target": name, "repository": it.state.repository, "toDelete": _names(it.going), "toLetGo": _names(it.staying)}
            for name, it in looks
        ]
        whole = {key: [name for part in parts for name in part[key]] for key in ("toDelete", "toLetGo")}
        _document(output, request, whole | {"notes": [*notes]}, parts, refused)
    output.line("nothing was changed: it was only shown", "good")
    return _code(refused)


def _names(changes: Iterable[Change]) -> list[str]:
    return [str(change.identity) for change in changes]


def _document(
    output: Output, request: RetireRequest, whole: dict[str, Any], parts: Sequence[dict[str, Any]], errors: Sequence[AnnealError]
) -> None:
    problems = reports.mended(output, [problem for error in errors for problem in error.problems])
    output.document({"target": request.target, "namespace": "", **whole, "targets": parts, "problems": problems})


# --- what is done
def _carried_out(output: Output, request: RetireRequest, members: Sequence[_Member], refused: Sequence[AnnealError]) -> int:
    with stoppable(output.note) as stop, output.working(f"retiring {request.target}"):
        for each in members:
            if stop.is_set():
                break
            if each.name == request.target and not _all_ended(members, refused):
                continue  # by its own record the next try finds the rest
            _end(output, each, stop)
    errors = [*refused, *(each.error for each in members if each.error)]
    changes = [change for each in members if each.done for change in each.done.done]
    deleted = sum(change.removes for change in changes)
    whole = {"deleted": _names(c for c in changes if c.removes), "letGo": _names(c for c in changes if not c.removes)}
    rest = len(refused) + sum(not each.ended for each in members)
    if output.as_json:
        parts = [facts(each.name, each.done, each.asked) for each in members if each.done]
        _document(output, request, whole | {"ended": not rest}, parts, errors)
    counts = f"{deleted} deleted, {len(changes) - deleted} let go"
    if rest:
        again = output.complete(request.typed)
        output.line(f"{request.target}: {counts}; {many(rest, 'record')} of it left; to go on: {again}", "warn")
        return _code(errors) or reports.FAILED
    output.line(f"{request.target}: retired: {counts}; gone: {many(len(members), 'record')}", "good")
    return reports.DONE_CODE


def _all_ended(members: Sequence[_Member], refused: Sequence[AnnealError]) -> bool:
    return not refused and all(each.ended for each in members[:-1])


def _end(output: Output, member: _Member, stop: threading.Event) -> None:
    """End one target, and say what keeps it if it doesn't."""
    member.asked.wrote = partial(print_done, output)
    try:
        member.done = member.asked.carry_out(member.shown, stop)
    except AnnealError as error:
        member.error = error
        reports.problems(output, error.problems)
        return
    if member.done.left:
        output.line(f"{member.name}: {many(len(member.done.left), 'object')} of it left", "warn")


def _code(errors: Sequence[AnnealError]) -> int:
    """Return the exit code: busy where nothing worse has happened."""
    if not errors:
        return reports.DONE_CODE
    return reports.BUSY if all(isinstance(error, Busy) for error in errors) else reports.FAILED
