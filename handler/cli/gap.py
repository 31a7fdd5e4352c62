"""`anneal gap` and `anneal orphans`: how live stands against git field by field, and what a run deletes. They write nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from handler.cli import reports
from handler.cli.output import Output
from handler.cli.session import Session
from handler.inspect.facts import Json, facts
from handler.inspect.gap import Gap, GapObject, ObjectState
from handler.inspect.inspector import Inspector
from handler.inspect.look import Ask, Seen
from handler.inspect.orphans import Fate, LiveOrphan, Orphans
from handler.inspect.plan_questions import AT_ONCE
from handler.model.numbers import many
from handler.model.result import Outcome
from handler.plan.gap import MOST, FieldState, GapField

DIFFERS = 2
_ALL = 1_000_000  # fields that -v lists
_WIDTHS = (10, 80, 32, 32, 24)  # columns of a row at most, before the next ones give way
_VALUE = 60  # characters of a value that are shown without -v
_HEADS = ("STATE", "FIELD", "DECLARED", "LIVE", "MANAGER")
_OBJECTS = {
    ObjectState.DIFFERS: ("~", "bad"),
    ObjectState.MISSING: ("+", "bad"),
    ObjectState.UNDECLARED: ("-", "warn"),
    ObjectState.ITSELF: (".", "dim"),
    ObjectState.EQUAL: ("=", "good"),
}
_FIELDS = {FieldState.DIFFERS: "bad", FieldState.UNDECLARED: "warn", FieldState.ITSELF: "dim", FieldState.EQUAL: "good"}
_FATES = {Fate.DELETED: ("-", "bad"), Fate.RECREATED: ("!", "bad"), Fate.KEPT: (".", "dim"), Fate.LEFT: (".", "dim")}
F = TypeVar("F", Gap, Orphans)


def gap(session: Session, target: str | None, commit: str, exit_code: bool) -> int:
    """Show how each object of TARGET, or of all, stands against git, and each field that differs or that git doesn't declare."""
    output = session.output
    target = session.target(target).name if commit else target

    def asked(inspector: Inspector, name: str) -> Gap:
        return inspector.gap(Ask(name, commit, most=_ALL if output.verbose else MOST))

    with _looked(session, target, asked) as found:
        seen = _told(output, target, found, _gap)
    return _code(seen, differs=exit_code and any(each.differs for each in seen))


def orphans(session: Session, target: str | None, exit_code: bool) -> int:
    """Show what the next run of TARGET, or of all, that compares live deletes and why; what keeps the rest, and what a guard holds."""
    with _looked(session, target, lambda inspector, name: inspector.orphans(name)) as found:
        seen = _told(session.output, target, found, _orphans)
    going = any(each.counts[Fate.DELETED] or each.counts[Fate.RECREATED] for each in seen)
    return _code(seen, differs=exit_code and going)


@contextmanager
def _looked(session: Session, target: str | None, ask: Callable[[Inspector, str], F]) -> Iterator[Iterator[F]]:
    """Look at the chosen targets, a few at once; what is found comes in their order."""
    chosen = session.all_or(target)
    session.sandbox.weak = True  # it only shows
    session.sandbox.start()
    inspector = Inspector(session.handler)
    with session.output.working("looking"), ThreadPoolExecutor(AT_ONCE) as pool:
        yield pool.map(lambda each: ask(inspector, each.name), chosen)


def _told(output: Output, target: str | None, found: Iterator[F], show: Callable[[Output, F], None]) -> list[F]:
    seen = []
    for each in found:
        mended = replace(each, seen=replace(each.seen, problems=tuple(reports.mended(output, each.seen.problems))))
        seen.append(mended)
        with output.still():
            show(output, each)
    if output.as_json:
        told: list[Json] = [facts(each) for each in seen]
        output.document(told[0] if target else {"targets": told})
    return seen


def _code(found: Sequence[Gap | Orphans], *, differs: bool) -> int:
    codes = {reports.EXIT[Outcome(each.seen.outcome)] for each in found}
    worst = next((code for code in (reports.FAILED, reports.BUSY) if code in codes), reports.DONE_CODE)
    return worst or (DIFFERS if differs else reports.DONE_CODE)


# --- the gap
def _gap(output: Output, found: Gap) -> None:
    if _failed(output, found.seen):
        return
    shown = [(each, _listed(output, each)) for each in found.objects]
    shown = [(each, fields) for each, fields in shown if output.verbose or fields or each.state is not ObjectState.EQUAL]
    rows = [_HEADS, *(_cells(output, field) for _, fields in shown for field in fields)]
    widths = [min(max(map(len, column)), most) for column, most in zip(zip(*rows, strict=True), _WIDTHS, strict=True)]
    if len(rows) > 1:
        output.line(_row(_HEADS, widths), "dim", whole=True)
    for each, fields in shown:
        _object(output, each)
        for field in fields:
            output.line(f"{_row(_cells(output, field), widths)}{f'  ({field.why})' if field.why else ''}", _FIELDS[field.state], whole=True)
        if fields and each.omitted:
            output.detail(f"    and {many(each.omitted, 'field')} more")
    for due in found.due:
        output.line(f"> {due.group}: {due.action} {due.identity}", "warn")
    words = ", ".join(f"{number} {state}" for state, number in found.fields.items() if number)
    _end(output, found.seen, found.counts, f"; fields: {words}" if words else "")
    if found.differs:
        _next(output, found.seen)


def _listed(output: Output, each: GapObject) -> tuple[GapField, ...]:
    wanted = tuple(FieldState) if output.verbose else (FieldState.DIFFERS, FieldState.UNDECLARED)
    return tuple(field for field in each.fields if field.state in wanted)


def _object(output: Output, each: GapObject) -> None:
    sign, style = _OBJECTS[each.state]
    does = "" if each.action in ("unchanged", "skip") else f"to {each.action}"
    marks = (does, "held" if each.held else "", each.reason, f"being deleted since {each.terminating}" if each.terminating else "")
    equal = f"{many(each.counts[FieldState.EQUAL], 'field')} equal" if each.counts[FieldState.EQUAL] else ""
    notes = "; ".join(dict.fromkeys(filter(None, (*marks, equal))))
    output.line(f"{sign} {each.state:10} {each.object}{f'  ({notes})' if notes else ''}{f'  {each.place}' if each.place else ''}", style)


def _cells(output: Output, field: GapField) -> tuple[str, ...]:
    sides = (_value(text, whole=output.verbose) for text in (field.declared, field.live))
    return str(field.state), field.path, *sides, field.manager or "-"


def _value(text: str, *, whole: bool) -> str:
    shown = text.replace("\n", "⏎") or "(none)"
    return shown if whole or len(shown) <= _VALUE else f"{shown[:_VALUE]}…"


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"    {'  '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))}".rstrip()


# --- orphans
def _orphans(output: Output, found: Orphans) -> None:
    if _failed(output, found.seen):
        return
    for each in found.orphans:
        _orphan(output, each)
    _end(output, found.seen, {word: number for word, number in found.counts.items() if word != "held"}, nothing="no orphans")
    if found.counts[Fate.DELETED] + found.counts[Fate.RECREATED]:
        _next(output, found.seen)


def _orphan(output: Output, each: LiveOrphan) -> None:
    sign, style = _FATES[each.fate]
    marks = (
        "held" if each.held else "",
        each.reason,
        f"since {each.since}" if each.since else "",
        f"finalizers: {', '.join(each.finalizers)}" if each.finalizers else "",
    )
    notes = "; ".join(filter(None, marks))
    output.line(f"{sign} {each.fate:10} {each.object}{f'  ({notes})' if notes else ''}", style)


# --- both
def _failed(output: Output, seen: Seen) -> bool:
    """Print why there is no plan; say whether there is none."""
    if seen.outcome == Outcome.PLANNED:
        return False
    reports.problems(output, seen.problems)
    output.line(f"{seen.target}: {seen.outcome}{'' if seen.problems else f': {seen.message}'}", "bad")
    return True


def _end(output: Output, seen: Seen, counts: dict[str, int], more: str = "", nothing: str = "nothing") -> None:
    said = ", ".join(f"{number} {word}" for word, number in counts.items() if number) or nothing
    aim = f" ({seen.aim})" if seen.aim != "head" else ""
    output.line(f"{seen.target} at {seen.commit[:12]}{aim}: {said}{more}", "head")
    for note in seen.notes:
        output.detail(f"note: {note}")


def _next(output: Output, seen: Seen) -> None:
    """Print what a guard says, and the command that carries out what was shown, or allows it."""
    held, then = seen.hold, f"anneal apply {seen.target}" + (f" --commit {seen.commit}" if seen.aim == "commit" else "")
    if held is None:
        output.line(f"next: {output.complete(then)}", whole=True)
        return
    output.line(f"{seen.target} waits for approval:" if held["recorded"] else "a run holds that until it is approved:", "warn")
    for reason in held["reasons"]:
        output.line(f"  {reason}")
    allow = output.complete(f"anneal approve {seen.target} {held['id']}")
    output.line(f"allow exactly that: {allow}" if held["recorded"] else f"next: {output.complete(then)}, then {allow}", whole=True)
