"""What a run leaves behind in the record: its entry in the history, the status, the time of the next try. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from handler.model.backoff import TRANSIENT
from handler.model.errors import AnnealError, StillDeleting
from handler.model.event import ASKED, Delivery
from handler.model.names import FIELD_MANAGER, Identity
from handler.model.plan import LOST, PENDING, Action, Change, FieldChange
from handler.model.quotation import printable
from handler.model.result import Outcome, Result
from handler.model.tree import CommitInfo
from handler.state.record import Drift, Run, RunStatus
from handler.state.record_format import stamp

RUNS = 20
NOTES = 8
"""Of the runs that were asked for by name and changed nothing so many are kept: they mustn't push out what was deployed."""
CHANGED = 50
DELIVERIES = 20
DRIFTS = 200
LINGERING = 20  # objects that are named while they are waited for until they are gone
_PHASES = {
    Outcome.APPLIED: "applied",
    Outcome.UNCHANGED: "applied",
    Outcome.HELD: "held",
    Outcome.PRUNING: "pruning",
    Outcome.FAILED: "failed",
    Outcome.SUSPENDED: "suspended",
    Outcome.DRIFTED: "drifted",
    Outcome.WAITING: "waiting",
    Outcome.ROLLED_BACK: "applied",
}
"""The phase that an outcome leaves; the others (busy, superseded, lagging, planned, refused) leave the phase as it was."""

ROLLING = "rolling-out"
"""The phase of an open attempt that carries a rollout out, from its begin until a run says how it ended."""
PRUNING = _PHASES[Outcome.PRUNING]

_UNDECIDED = (Outcome.WAITING, Outcome.REFUSED, Outcome.BUSY, Outcome.PLANNED, Outcome.SUSPENDED, Outcome.SUPERSEDED)
"""Ends of a commit's run that say nothing of what becomes of its open attempt; those of another commit's never do."""

PASSING = (Outcome.BUSY, Outcome.WAITING, Outcome.SUPERSEDED)
"""Ends of a round after which its run may go on: under the same id, with what comes next."""

_DEPLOYING = (Outcome.APPLIED, Outcome.HELD, Outcome.PRUNING, Outcome.ROLLED_BACK)


def run_of(result: Result, commit: CommitInfo | None, actor: str, started: float) -> Run:
    """Make the history's entry of a run. `started`: seconds since the epoch; `commit`: None where none could be fetched."""
    changed = [f"{change.identity} {PENDING if change.done == PENDING else change.action}" for change in result.written]
    changed += [f"{gone.identity} {LOST}" for change in result.written for gone in change.takes if gone.counted]
    changed += [f"{change.identity} to {change.action}" for change in result.left]
    changed += [f"{gone.identity} to lose" for gone in result.losing]
    return Run(
        id=result.run,
        trigger=result.trigger,
        outcome=str(result.outcome),
        started=stamp(started),
        commit=result.commit,
        subject=commit.subject if commit else "",
        author=commit.author if commit else "",
        actor=actor,
        counts=dict(result.counts),
        duration=result.duration,
        message=result.message or "\n".join(str(problem) for problem in result.problems),
        code=result.code,
        changed=_capped(changed),
    )


def _capped(subjects: Sequence[str]) -> tuple[str, ...]:
    if len(subjects) <= CHANGED:
        return tuple(subjects)
    return (*subjects[: CHANGED - 1], f"and {len(subjects) - CHANGED + 1} more")


def append(history: tuple[Run, ...], run: Run) -> tuple[Run, ...]:
    """Put a run in front; the same failure of the same commit again only counts up the entry in front: `times`, `last`, the newest id.

    A run that was asked for by name is an entry of its own, for its end is waited for. A run has one entry, its last: another worker's
    `busy` for the same message gives way. A commit that was superseded in it keeps its entry, as `<id>-1`; one that waits has one.
    """
    history = tuple(_apart(each, run, history) for each in history)
    history = tuple(each for each in history if not ((run.id and each.id == run.id) or _waits_still(each, run)))
    if history and _same_failure(history[0], run):
        first = history[0]
        return (replace(first, id=run.id, times=first.times + 1, last=run.started, duration=run.duration), *history[1:])
    runs = (run, *history)
    notes = [each for place, each in enumerate(runs) if _is_note(each) or _is_merged_end(each, runs[place + 1 :])]
    return tuple(each for each in runs if each not in notes[NOTES:])[:RUNS]


def _apart(older: Run, newer: Run, history: Iterable[Run]) -> Run:
    superseded = older.id == newer.id and older.outcome == Outcome.SUPERSEDED and older.commit != newer.commit
    number = 1 + sum(each.id.startswith(f"{older.id}-") for each in history)
    return replace(older, id=f"{older.id}-{number}") if older.id and superseded else older


def _waits_still(older: Run, newer: Run) -> bool:
    same = (older.outcome, older.commit) == (newer.outcome, newer.commit)
    return same and newer.outcome == Outcome.WAITING and not _is_asked(older)


def overtaken(history: tuple[Run, ...], commit: str, by: str) -> tuple[Run, ...]:
    """Return the runs, those that waited for the open attempt's `commit` as superseded, now that an attempt for another one opens."""
    newest = [*itertools.takewhile(lambda run: run.commit != commit or run.outcome in _UNDECIDED, history)]
    waited = [run for run in newest if (run.outcome, run.commit) == (Outcome.WAITING, commit)]
    seen = f"; overtaken by {by[:12]}"
    return tuple(replace(run, outcome=str(Outcome.SUPERSEDED), message=run.message + seen) if run in waited else run for run in history)


def _is_asked(run: Run) -> bool:
    """An automatic rollback wasn't."""
    return run.trigger in ASKED and run.actor != FIELD_MANAGER


def _is_note(run: Run) -> bool:
    return _is_asked(run) and run.outcome not in _DEPLOYING


def _is_merged_end(run: Run, older: Iterable[Run]) -> bool:
    """It repeats a run's end for another request that was merged into it."""
    facts = (run.started, run.commit, run.outcome)
    return _is_asked(run) and any((each.started, each.commit, each.outcome) == facts for each in older)


def _same_failure(older: Run, newer: Run) -> bool:
    facts = [(each.outcome, each.commit, each.code, each.message) for each in (older, newer)]
    waited_for = any(_is_asked(each) and each.trigger != "oneoff" for each in (older, newer))
    same = facts[0] == facts[1] and newer.outcome in (Outcome.FAILED, Outcome.PRUNING)
    return same and newer.changed in ((), older.changed) and not waited_for


def deliveries(known: tuple[Delivery, ...], newer: Iterable[Delivery]) -> tuple[Delivery, ...]:
    """Add deliveries, each once, and keep the last twenty."""
    found = {(delivery.provider, delivery.id): delivery for delivery in (*known, *newer)}
    return tuple(found.values())[-DELIVERIES:]


def failed(status: RunStatus, error: AnnealError, now: float) -> RunStatus:
    """Return the status after an error; only a transient one gets a next try. A failure after others keeps their `since`."""
    failures = status.failures + 1
    again = status.phase in ("failed", PRUNING) or (status.phase == ROLLING and status.failures > 0)
    return replace(
        status,
        phase="failed",
        since=status.since if again else stamp(now),
        message=str(error),
        failures=failures,
        next_try=stamp(now + TRANSIENT.after(failures)) if error.who == "nobody" else "",
        code=error.code,
        who=error.who,
    )


def ended(status: RunStatus, result: Result, now: float) -> RunStatus:
    """Return the status after a run that didn't fail. The same phase again keeps its `since`, a run that changed nothing the counts."""
    goes_on = status.phase == ROLLING and result.outcome == Outcome.WAITING
    phase = ROLLING if goes_on else _PHASES.get(result.outcome, status.phase)
    quiet = result.outcome == Outcome.UNCHANGED and status.phase == phase
    return RunStatus(
        phase=phase,
        since=status.since if status.phase == phase else stamp(now),
        counts=status.counts if quiet else dict(result.counts),
        unhealthy=() if phase == _PHASES[Outcome.APPLIED] else status.unhealthy,
        message="" if quiet else result.message,
        next_try=stamp(result.next_try) if result.next_try else "",
    )


def rolling(status: RunStatus, now: float) -> RunStatus:
    """Return the status of an attempt that carries a rollout out; what has failed so far isn't forgotten."""
    since = status.since if status.phase == ROLLING or status.failures else stamp(now)
    return replace(status, phase=ROLLING, since=since, message="", code="", who="")


def lingering(status: RunStatus, lines: Sequence[str], now: float, first: Identity | None = None) -> RunStatus:
    """Return the status of a run that waits until something is gone. `lines`: an object each; `first`: the first of them."""
    since = status.since if status.phase == PRUNING else stamp(now)
    named = "\n".join([*lines[:LINGERING], *([f"and {len(lines) - LINGERING} more"] if len(lines) > LINGERING else [])])
    return replace(status, phase=PRUNING, since=since, message=named, code=StillDeleting.code, who=StillDeleting.who, lingers=first)


def drift_of(changes: Iterable[Change]) -> tuple[Drift, ...]:
    """Make the drift record of a plan's changes (see `Drift`): one a field, sorted, at most 200."""
    found = {
        (change.identity, item.path): Drift(change.identity, *map(printable, (item.path, item.declared, item.live, item.manager)))
        for change in changes
        if change.writes
        for item in change.fields or (_whole(change),)
    }
    return tuple(found[key] for key in sorted(found))[:DRIFTS]


def _whole(change: Change) -> FieldChange:
    declared, live = ("" if change.action is Action.PRUNE else "yes"), ("" if change.action is Action.CREATE else "yes")
    return FieldChange("", declared, live)
