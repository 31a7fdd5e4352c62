"""What a person pauses and resumes: one change of a target's record, by command line or page."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from handler.config import value_formats
from handler.engine.run.errors import RequestRefused
from handler.engine.run.former_record import read_former, refuse_elsewhere, refuse_renamed
from handler.model.advice import advice
from handler.model.errors import ShownOtherwise
from handler.model.tree import printable
from handler.state.record import State, Suspend
from handler.state.record_format import stamp

if TYPE_CHECKING:
    from handler.app.build import Handler
    from handler.app.record_places import TargetRecords
    from handler.config.settings import Target
    from handler.state.store import StateStore

_LINE = 200  # characters of a person's name, and of the reason


def pause_of(by: str, reason: str, until: str) -> Suspend:
    """Return a pause that begins now. `until`: see `moment`; empty: it lasts until `resume`. Raises ValueError: see there."""
    now = time.time()
    return Suspend(by, reason, stamp(moment(until, now)) if until else "", stamp(now))


def asked(by: str, reason: str, until: str) -> Suspend:
    """Return the same, as a form asks for it. Raises RequestRefused: `until` is no moment to come."""
    try:
        return pause_of(printable(by, _LINE), printable(reason, _LINE), until.strip())
    except ValueError as error:
        seen = f"until {printable(until, _LINE)}: {error}"
        raise RequestRefused.of("suspend", seen, fix="give a duration (2h, 30m), or a time with its zone: 2026-01-31T12:00:00Z") from None


def suspend(handler: Handler, target: Target, pause: Suspend, seen: str | None = None) -> str:
    """Let no run of a target write while the pause holds; return what was done. Raises AnnealError.

    `seen`: when the pause began that the person was shown, empty: none was, None: it doesn't matter. Raises ShownOtherwise: another holds.
    """
    store = handler.store(target)
    known = _own(store, target.name)
    blank = store.blank(handler.objects(target).cluster_uid()) if known is None else None
    if blank:
        refuse_elsewhere(_places(handler, target), blank)
    store.update(lambda state: replace(_as_seen(state, seen), suspend=pause), blank)
    return f"suspended until {pause.until}" if pause.until else "suspended"


def resume(handler: Handler, target: Target, seen: str | None = None) -> str:
    """End a target's pause, also that of the record that it is to take over; return what was done.

    `seen`: see `suspend`. Raises AnnealError; ShownOtherwise: see there.
    """
    store = handler.store(target)
    state = _own(store, target.name)
    if state is not None:
        _as_seen(state, seen)
    stays = "stays suspended: anneal.yaml says `suspend: true`" if target.suspend else ""
    former = _paused_former(handler, target, state)
    if former:
        former.update(lambda now: replace(now, suspend=None))
    if state is not None and state.suspend is not None:
        # A refused commit is tried again.
        store.update(lambda now: replace(_as_seen(now, seen), suspend=None, status=replace(now.status, refusal=None)))
    elif not former:
        return stays or "was not suspended"
    return stays or "resumed"


def _places(handler: Handler, target: Target) -> TargetRecords:
    from handler.app.record_places import TargetRecords  # noqa: PLC0415 - a door that only names its routes loads no cluster

    return TargetRecords(handler, target)


def _own(store: StateStore, name: str) -> State | None:
    """Read a target's record. Raises RequestRefused: it is another installation's; TargetRenamed."""
    state = store.read().state
    if state is not None and not state.fresh and not store.writes(state):  # a fresh one goes wherever its target does
        seen = f"its record is of installation {state.installation}, which alone pauses and resumes it"
        other = "do that by its configuration, and give this target another name, or its record another `stateNamespace`"
        line = advice("`installationFrom: {yaml}`", state.installation)
        fix = advice("{text}; only where this installation replaces that one: write {text}, or `anneal retarget {}`", other, line, name)
        raise RequestRefused.of(f"target {name}", seen, fix=fix)
    refuse_renamed(state, store.namespace)
    return state


def _paused_former(handler: Handler, target: Target, state: State | None) -> StateStore | None:
    """Return the record that a target is to take over, whose pause holds for it, too; None: there is none, or it isn't paused."""
    if state is not None and not (state.fresh or state.former):
        return None
    repository, cluster = target.repository.url, handler.objects(target).cluster_uid()
    former = read_former(_places(handler, target), repository, cluster, state.former if state else None)
    known = former.stored.state if former and former.is_ours(repository, cluster) else None
    return former.store if former and known and known.suspend and known.renamed_to is None else None


def _as_seen(state: State, seen: str | None) -> State:
    pause = state.suspension(time.time())
    if seen is not None and seen != (pause.at if pause else ""):
        raise ShownOtherwise.of(f"target {state.target}", "another pause holds now, or none, and nothing was done")
    return state


def moment(text: str, now: float) -> float:
    """Read `2h`, `30m` or an RFC 3339 time as seconds since the epoch. Raises ValueError: it is neither, or lies in the past."""
    length = value_formats.seconds(text)
    if length is not None:
        end = now + length
    else:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            raise ValueError("a time needs its zone, e.g. 2026-01-31T12:00:00Z")
        end = found.timestamp()
    if end <= now:
        raise ValueError("lies in the past")
    return end
