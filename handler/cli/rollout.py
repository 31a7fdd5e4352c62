"""`anneal rollout`: the groups and steps of a target's newest rollout, by one GET of its record; `--watch` follows it to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from handler.app.overview import Overview
from handler.cli import logs, reports, target_page
from handler.cli.output import Output
from handler.cli.rollout_lines import step_line, tree
from handler.cli.session import Session
from handler.config.instance_target import refuse_template
from handler.config.settings import Target
from handler.engine.planner.due import FAILED
from handler.state.record import Progress, State

_EVERY = 1.0  # seconds between two looks at the record

Read = Callable[[], State | None]


def rollout(session: Session, target: str | None, watch: bool, with_logs: bool) -> int:
    """Show the groups and steps of TARGET's newest rollout: what is done, what goes on, since when. Without one: how TARGET does."""
    chosen = session.target(target)
    refuse_template(chosen, "has a rollout of its own")
    store = session.handler.store(chosen) if watch else session.handler.brief_store(chosen)
    output = session.output
    state = _watched(output, lambda: store.read().state) if watch else store.read().state
    known = state.rollout if state else None
    logged = logs.read(session, chosen, logs.of_record(state)) if with_logs else []
    if output.as_json:
        also = {"logs": [each.facts() for each in logged]} if with_logs else {}
        health = {"health": replace(state.health, apart=None)} if state else {}
        output.document({"target": chosen.name, "waiting": state.waiting if state else None, "rollout": known, **health, **also})
    elif known is None:
        _explain(session, chosen)
    elif not watch:
        for text, style in tree(known, time.time()):
            output.line(text, style)
    for line in (line for each in logged for line in each.lines()):
        output.line(line)
    if state and (why := gone_back(state)):
        output.line(why, "bad")
    return _code(state, watch=watch) if state else reports.DONE_CODE


def _explain(session: Session, target: Target) -> None:
    (row,) = Overview(session.settings, session.handler, asks=False, whole=True).look([target])
    session.output.line(f"{target.name} has no rollout on record; how it stands:")
    target_page.show(session.output, row, session.given)


def gone_back(state: State) -> str:
    """Say what was gone back from by itself, and why; empty: the target isn't, or isn't yet, where a failed rollout has sent it."""
    pin = state.pin
    return pin.reason if pin and pin.automatic and state.attempt is None and state.commit == pin.commit else ""


def _code(state: State, *, watch: bool) -> int:
    if gone_back(state) or (state.rollout is not None and state.rollout.outcome == FAILED):
        return reports.FAILED
    return reports.BUSY if watch and goes_on(state) else reports.DONE_CODE


def goes_on(state: State) -> bool:
    """Whether a rollout is under way, or may begin in the run that is open."""
    known = state.rollout
    return state.attempt is not None and (known is None or not known.outcome or known.commit != state.attempt.commit)


def _watched(output: Output, read: Read) -> State | None:
    with output.picture() as draw:
        seen: dict[tuple[str, str, str], str] = {}
        while True:
            state = read()
            if state and state.rollout:
                _show(output, state.rollout, draw, seen)
            if state is None or not goes_on(state) or state.suspension(time.time()):
                if state and state.rollout and not draw:
                    output.line(*next(tree(state.rollout, time.time())))
                return state
            time.sleep(_EVERY)


def _show(
    output: Output,
    known: Progress,
    draw: Callable[[list[tuple[str, str]]], None] | None,
    seen: dict[tuple[str, str, str], str],
) -> None:
    if draw:
        draw(list(tree(known, time.time())))
        return
    for step in known.steps:
        key, line = (known.id or known.started, step.group, step.step), step_line(step)
        if step.started and seen.get(key) != line:
            output.line(line)
        seen[key] = line
