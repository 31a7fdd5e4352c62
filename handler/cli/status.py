"""`anneal status`: a table of all targets, trouble first; of one target its page. It only reads (`handler.app.overview`)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

import click

from handler.app.overview import Overview
from handler.app.retired import RetiredTarget
from handler.app.target_row import NOT_KNOWN, TROUBLE, UNWELL, TargetRow
from handler.cli import logs, status_table, target_page
from handler.cli.filenames import from_files
from handler.cli.follow_up_commands import GivenFlags
from handler.cli.output import Output, wrapped
from handler.cli.session import Session
from handler.config.settings import Target
from handler.model.errors import SecretUnavailable
from handler.state.record_format import stamp

WELL, ERROR, TROUBLED = 0, 1, 2
_EVERY = 2.0  # seconds between two looks of --watch
_HEADS = 30.0  # seconds for which it believes what a git host has said
_PATIENCE = 0.5  # seconds after which a terminal shows what is known so far
Draw = Callable[[list[tuple[str, str]]], None]


@from_files(record=True)
def status(session: Session, target: str | None, *, watch: bool, coded: bool, offline: bool, timeout: float, with_logs: bool) -> int:
    """Say how all targets stand, a line each, trouble first, and what to do next; or all about TARGET."""
    if with_logs:
        target = session.target(target).name
    chosen = session.all_or(target)
    if watch and (session.output.as_json or with_logs):
        raise click.UsageError("--watch doesn't go with -o json or --logs")
    if target and session.output.wide:
        raise click.UsageError("-o wide is a form of the table: leave TARGET out")
    overview = _overview(session, offline=offline, whole=bool(target), deadline=timeout)
    if watch:
        _follow(session, overview, chosen, whole=bool(target) and not chosen[0].is_template)
    if target and not chosen[0].is_template:
        rows = overview.look(chosen)
        _page(session, rows[0], with_logs=with_logs)
    else:
        rows = _shown(session, overview, chosen, whole=bool(target))
    return code(rows) if coded else ERROR if any(row.trouble and not row.state for row in rows) else WELL


def code(rows: Sequence[TargetRow]) -> int:
    """Return the exit code: 0 if all is well, else that of the trouble."""
    levels = {row.level for row in rows}
    return TROUBLED if levels & TROUBLE else ERROR if levels & NOT_KNOWN else WELL


def _overview(session: Session, *, offline: bool, whole: bool, deadline: float) -> Overview:
    if not offline:
        try:
            return Overview(session.settings, session.ways(git=True, patience=deadline), whole=whole, deadline=deadline)
        except SecretUnavailable as error:
            session.output.note(f"git isn't asked: {error.problems[0]}")
    return Overview(session.settings, session.ways(git=False, patience=deadline), asks=False, whole=whole, deadline=deadline)


# --- one target
def _page(session: Session, row: TargetRow, *, with_logs: bool) -> None:
    logged = logs.read(session, row.target, logs.of_record(row.state)) if with_logs else []
    if not session.output.as_json:
        target_page.show(session.output, row, session.given, logged)
        return
    more = {"logs": [each.facts() for each in logged]} if with_logs else {}
    seen = status_table.facts(row, session.given)
    session.output.document(
        target_page.facts(row, session.given) | {key: seen[key] for key in ("server", "head", "promotion") if key in seen} | more
    )


# --- all of them
def _shown(session: Session, overview: Overview, chosen: Sequence[Target], *, whole: bool) -> list[TargetRow]:
    """Show all targets; of a template's instances those in trouble, or (`whole`) all."""
    output = session.output

    def shown(rows: list[TargetRow]) -> list[TargetRow]:
        return [row for row in rows if whole or row.target.instance is None or row.level in UNWELL]

    if output.as_json:
        rows = shown(overview.look(chosen))
        gone = [status_table.retired_facts(each, session.given) for each in overview.retired]
        output.document({"targets": [status_table.facts(row, session.given) for row in rows], "retired": gone})
        return rows
    since, drawn = time.monotonic(), False
    with contextlib.ExitStack() as opened:
        draw: Draw | None = None

        def show(rows: list[TargetRow]) -> None:
            nonlocal draw, drawn
            if not output.moves or output.width is None or time.monotonic() - since < _PATIENCE:
                return
            if not drawn:
                draw, drawn = opened.enter_context(output.picture()), True
            if draw:
                draw(_lines(output, shown(rows)))

        rows = shown(overview.look(chosen, show))
        if draw:
            draw(_lines(output, rows))
    for text, style in () if drawn else _lines(output, rows):
        output.line(text, style, whole=True)
    for text, style in (*_held(rows, whole=whole), *_hints(rows, session.given, overview.retired)):
        output.line(text, style, whole=text.startswith("    "))
    return rows


def _lines(output: Output, rows: Sequence[TargetRow]) -> list[tuple[str, str]]:
    return list(status_table.table(rows, width=output.width, wide=output.wide))


def _held(rows: Sequence[TargetRow], *, whole: bool) -> list[tuple[str, str]]:
    """Return what of a template that is looked at alone is held: which instances."""
    row = next((each for each in rows if whole and each.target.is_template), None)
    held = row.state.held if row and row.state else None
    found = target_page.held_rows(held, row.now) if row and held else ()
    return [(f"  {label + ':' if label else '':6} {text}", "") for label, text in found]


def _hints(rows: Sequence[TargetRow], given: GivenFlags, gone: Sequence[RetiredTarget]) -> list[tuple[str, str]]:
    found = [*status_table.hints(rows, given), *status_table.retired_lines(gone, given)]
    return [("", ""), *found] if found else []


# --- again and again
def _follow(session: Session, overview: Overview, chosen: Sequence[Target], *, whole: bool) -> NoReturn:
    output, shown = session.output, dict[str, str]()
    with output.picture() as draw:
        while True:
            rows = overview.look(chosen, heads=_HEADS)
            if draw:
                hints = [] if whole else _hints(rows, session.given, overview.retired)
                draw(_page_lines(output, rows[0], session.given) if whole else [*_lines(output, rows), *hints])
            else:
                _changes(output, rows, shown)
            time.sleep(_EVERY)


def _page_lines(output: Output, row: TargetRow, given: GivenFlags) -> list[tuple[str, str]]:
    lines = target_page.lines(row, given)
    return [(part, style) for text, style, hang in lines for part in (wrapped(text, output.width, hang) if hang else text).split("\n")]


def _changes(output: Output, rows: Sequence[TargetRow], shown: dict[str, str]) -> None:
    """Print a line for each target that stands differently from its last line; ages alone are no change."""
    for row in rows:
        found = status_table.cells(row)
        facts = {name: found[name] for name in ("PHASE", "HEALTH", "COMMIT", "HEAD", "DRIFT", "HELD")}
        line = " ".join(f"{name.lower()}={text}" for name, text in facts.items()) + f" level={row.level.name.lower()}"
        if shown.get(row.target.name) != line:
            output.line(f"{stamp(row.now)} {row.target.name} {line}")
        shown[row.target.name] = line
