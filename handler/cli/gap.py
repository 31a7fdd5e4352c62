"""`anneal gap`: how live stands against git, object by object and field by field. It writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from handler.cli.live_look import exit_code_of, failed, look_at, named, print_end, print_looks, print_next, style_of
from handler.cli.output import Output
from handler.cli.session import Session
from handler.inspect.gap import Gap, GapObject
from handler.inspect.inspector import Inspector
from handler.inspect.look import Ask
from handler.inspect.signs import FIELDS, OBJECTS, ObjectState
from handler.model.numbers import many
from handler.plan.gap import MOST, FieldState, GapField

_ALL = 1_000_000  # fields that -v lists
_WIDTHS = (10, 80, 32, 32, 24)  # columns of a row at most, before the next ones give way
_VALUE = 60  # characters of a value that are shown without -v
_HEADS = ("STATE", "FIELD", "DECLARED", "LIVE", "MANAGER")


def gap(session: Session, target: str | None, commit: str, exit_code: bool) -> int:
    """Show how each object of TARGET, or of all, stands against git, and each field that differs or that git doesn't declare."""
    output = session.output
    target = session.target(target).name if commit else target

    def asked(inspector: Inspector, name: str) -> Gap:
        return inspector.gap(Ask(name, commit, most=_ALL if output.verbose else MOST))

    with look_at(session, target, asked) as found:
        seen = print_looks(output, target, found, _gap)
    return exit_code_of(seen, differs=exit_code and any(each.differs for each in seen))


def _gap(output: Output, found: Gap) -> None:
    if failed(output, found.seen):
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
            why = f"  ({field.why})" if field.why else ""
            output.line(f"{_row(_cells(output, field), widths)}{why}", style_of(FIELDS[field.state]), whole=True)
        if fields and each.omitted:
            output.detail(f"    and {many(each.omitted, 'field')} more")
    for due in found.due:
        output.line(f"> {due.group}: {due.action} {due.identity}", "warn")
    for gone in found.lost:
        output.line(f"- {gone.action:10} {gone.object}  ({gone.reason}{'; held' if gone.held else ''})", "bad")
    words = ", ".join(f"{number} {word}" for word, number in named(found.fields, FIELDS).items() if number)
    print_end(output, found.seen, named(found.counts, OBJECTS), f"; fields: {words}" if words else "")
    if found.differs:
        print_next(output, found.seen)


def _listed(output: Output, each: GapObject) -> tuple[GapField, ...]:
    wanted = tuple(FieldState) if output.verbose else (FieldState.DIFFERS, FieldState.UNDECLARED)
    return tuple(field for field in each.fields if field.state in wanted)


def _object(output: Output, each: GapObject) -> None:
    sign = OBJECTS[each.state]
    does = "" if each.action in ("unchanged", "skip") else f"to {each.action}"
    marks = (does, "held" if each.held else "", each.reason, f"being deleted since {each.terminating}" if each.terminating else "")
    equal = f"{many(each.counts[FieldState.EQUAL], 'field')} equal" if each.counts[FieldState.EQUAL] else ""
    notes = "; ".join(dict.fromkeys(filter(None, (*marks, equal))))
    tail = f"{f'  ({notes})' if notes else ''}{f'  {each.place}' if each.place else ''}"
    output.line(f"{sign.sign} {sign.word:10} {each.object}{tail}", style_of(sign))


def _cells(output: Output, field: GapField) -> tuple[str, ...]:
    sides = (_value(text, whole=output.verbose) for text in (field.declared, field.live))
    return FIELDS[field.state].word, field.path, *sides, field.manager or "-"


def _value(text: str, *, whole: bool) -> str:
    shown = text.replace("\n", "⏎") or "(none)"
    return shown if whole or len(shown) <= _VALUE else f"{shown[:_VALUE]}…"


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"    {'  '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))}".rstrip()
