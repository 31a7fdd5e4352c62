"""Brings the commit statuses of a record up to date as it is written. Pure.

    an attempt opens for a new commit       pending
    an entry of the history, new in it      its end: success, failure, held; still pending where it waits
    what is aimed at is another commit      what was pending or held is superseded by that
    a webhook named it, no run aimed at it  superseded, if the host confirms it (`RecordedCommitStatus.hinted`)

Law: nothing is written for a status alone (`StateStore`), so what is owed to a git host can't be lost between an end and its record. A
commit's success stays what it is when the clock's runs find more: drift, and what operators change, isn't its author's. So does a failure
that they meet again, in whatever words: GitHub takes 1,000 statuses of a commit and context, and one is left for its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from handler.model.commit_status import TEXT, StatusState, fitting
from handler.model.numbers import counted
from handler.model.plan import LOST
from handler.model.result import Outcome
from handler.state.record import Run, State
from handler.state.record_values import MOST_CHANGES, MOST_COMMITS, RecordedCommitStatus

_CLOCK = ("tick", "drift", "resource")
_FAILED = (Outcome.FAILED, Outcome.PRUNING)
_LAST = (StatusState.SUCCESS, StatusState.SUPERSEDED)
_STANDS = (StatusState.SUCCESS, StatusState.UNTOUCHED)
_GOES_ON = (StatusState.PENDING, StatusState.HELD)
_Found = dict[str, RecordedCommitStatus]


def kept(before: State | None, after: State, *, every: bool = False) -> State:
    """Return a record, about to be written over `before`, with its commit statuses brought up to date.

    `every`: commits that change nothing for the target have one, too.
    """
    known = {each.commit: each for each in after.commit_statuses}
    found = dict(known)
    for run in _new_runs(before, after):
        status = _of_run(run, before, after, found.get(run.commit))
        _note(found, status if every or (status and status.state != StatusState.UNTOUCHED) else None)
    _begun(found, before, after)
    aim = _aim(after)
    if aim and before is not None:
        _superseded(found, after, aim)
        _hinted(found, before, after, aim)
    if found == known:
        return after
    return replace(after, commit_statuses=_newest(found, known))


def posted(state: State, sent: Iterable[RecordedCommitStatus]) -> State:
    """Return a record in which these, as far as they are still what it says, aren't owed any more."""
    done = set(sent)
    marked = tuple(replace(each, posted=True) if each in done else each for each in state.commit_statuses)
    return state if marked == state.commit_statuses else replace(state, commit_statuses=marked)


def without(state: State, dropped: Iterable[RecordedCommitStatus]) -> State:
    """Return a record without these: their host doesn't confirm them."""
    gone = set(dropped)
    return replace(state, commit_statuses=tuple(each for each in state.commit_statuses if each not in gone))


def only_shown(before: State, after: State) -> bool:
    """Whether nothing but what a git host shows sets two records apart: no run depends on that."""
    return replace(before, commit_statuses=after.commit_statuses, pull_requests=after.pull_requests) == after


def _new_runs(before: State | None, after: State) -> list[Run]:
    """Return the runs that are new in the history, or end otherwise than it said, the oldest first."""
    known = {(run.id, run.outcome, run.commit) for run in before.history} if before else set()
    return [run for run in reversed(after.history) if run.commit and (run.id, run.outcome, run.commit) not in known]


def _of_run(run: Run, before: State | None, after: State, prior: RecordedCommitStatus | None) -> RecordedCommitStatus | None:
    """Return what a run's end says of its commit; None: nothing, or nothing new."""
    is_known = before is not None and run.commit == before.commit
    if run.trigger in _CLOCK and (prior.state == StatusState.SUCCESS if prior else is_known):
        return None
    found: RecordedCommitStatus | None = None
    match run.outcome:
        case Outcome.APPLIED:
            found = _status(run, StatusState.SUCCESS, success(run))
        case Outcome.UNCHANGED:
            found = _unchanged(run, before, after, prior)
        case Outcome.HELD:
            found = _status(run, StatusState.HELD, run.message)
        case Outcome.WAITING if prior is None or prior.state != StatusState.SUCCESS:
            found = _status(run, StatusState.PENDING, first_line(run.message))
        case Outcome.ROLLED_BACK if prior and prior.state == StatusState.PENDING:
            found = _status(run, StatusState.SUCCESS, success(run))
        case outcome if outcome in _FAILED and not _is_repeated(run, before, prior):
            found = _status(run, StatusState.FAILURE, failure(run))
    return found


def _is_repeated(run: Run, before: State | None, prior: RecordedCommitStatus | None) -> bool:
    """Whether the clock's run meets the failure again that its commit shows already."""
    if before is None or prior is None or prior.state != StatusState.FAILURE or run.trigger not in _CLOCK:
        return False
    last = next((each for each in before.history if each.commit == run.commit), None)
    return last is not None and (last.outcome, last.code) == (run.outcome, run.code)


def _unchanged(run: Run, before: State | None, after: State, prior: RecordedCommitStatus | None) -> RecordedCommitStatus | None:
    """Return the end of a commit that changed no object: a success where it was begun, or the target reads something else by it."""
    if prior and prior.state in _STANDS:
        return None
    is_read = before is None or before.reads != after.reads
    if prior or is_read:
        return _status(run, StatusState.SUCCESS, "live equals git: nothing to change")
    return _status(run, StatusState.UNTOUCHED, "nothing that it reads changed") if after.commit == run.commit else None


def _status(run: Run, state: StatusState, text: str) -> RecordedCommitStatus:
    return RecordedCommitStatus(run.commit, state, fitting(text), run.id)


def _begun(found: _Found, before: State | None, after: State) -> None:
    """Note a commit for which an attempt opens; one that repairs what is recorded says nothing new of its commit."""
    attempt = after.attempt
    if attempt is None or (before and before.attempt and before.attempt.commit == attempt.commit):
        return
    prior = found.get(attempt.commit)
    if prior.state in _STANDS if prior else attempt.commit == after.commit:
        return
    _note(found, RecordedCommitStatus(attempt.commit, StatusState.PENDING, "being applied", attempt.token))


def _note(found: _Found, status: RecordedCommitStatus | None) -> None:
    """Put a status into the place of its commit's, which stays where it says the same."""
    if status is None:
        return
    prior = found.get(status.commit)
    changes = prior.changes + 1 if prior else 0
    is_bounded = changes < MOST_CHANGES or status.state in _LAST
    if prior is None or ((prior.state, prior.text) != (status.state, status.text) and is_bounded):
        found[status.commit] = replace(status, changes=changes)


def _aim(state: State) -> str:
    """Return the commit that a target is on, or is being brought to; empty: none yet."""
    if state.attempt:
        return state.attempt.commit
    newest = next((run for run in state.history if run.commit), None)
    waits = state.held.commit if state.held else state.awaits.commit if state.awaits else ""
    return waits or (newest.commit if newest and newest.outcome in _FAILED else state.commit)


def _superseded(found: _Found, after: State, aim: str) -> None:
    """End what was begun of commits that are aimed at no longer."""
    held = {each.commit for each in (after.held, after.awaits) if each}
    for status in list(found.values()):
        if status.state in _GOES_ON and status.commit not in held | {aim}:
            found[status.commit] = RecordedCommitStatus(status.commit, StatusState.SUPERSEDED, f"superseded by {aim[:12]}", status.run)


def _hinted(found: _Found, before: State, after: State, aim: str) -> None:
    """Note the commits of new deliveries that no run aimed at, because a newer one came before: the host is to confirm them."""
    newest = after.history[0] if after.history else None
    if after.reads == before.reads and (newest is None or newest.outcome not in (*_FAILED, Outcome.HELD)):
        return  # nothing between the two is read
    known = {(each.provider, each.id) for each in before.deliveries}
    for each in after.deliveries:
        is_new = bool(each.hint) and (each.provider, each.id) not in known
        if is_new and each.hint not in found and each.hint not in (aim, after.commit, before.commit):
            text = f"superseded by {aim[:12]}"
            found[each.hint] = RecordedCommitStatus(each.hint, StatusState.SUPERSEDED, text, unless=before.reads, hinted=True)


def _newest(found: Mapping[str, RecordedCommitStatus], known: Mapping[str, RecordedCommitStatus]) -> tuple[RecordedCommitStatus, ...]:
    """Return statuses, what is new first, as many as a record keeps; of more, ends that the host has go first, and what goes on last."""
    ordered = [each for each in found.values() if known.get(each.commit) != each]
    ordered += [each for each in found.values() if known.get(each.commit) == each]
    while len(ordered) > MOST_COMMITS:
        posted_ends = (each for each in reversed(ordered) if each.is_end and each.posted)
        gone = next(posted_ends, None) or next((each for each in reversed(ordered) if each.is_end), ordered[-1])
        ordered.remove(gone)
    return tuple(ordered)


_WRITTEN = ("created", "configured", "recreated", "pruned", LOST)


def _written(run: Run) -> dict[str, int]:
    """Return what a run has written, in words that come in one order."""
    return {word: run.counts[word] for word in _WRITTEN if run.counts.get(word)}


def success(run: Run) -> str:
    """Say what a run wrote; where it wrote nothing, what there is."""
    written = _written(run)
    took = f" in {run.duration:.1f} s" if run.duration else ""
    return f"{counted(written)}{took}" if written else f"nothing to change, {counted(run.counts)}"


def failure(run: Run) -> str:
    """Say what was written before it failed, the first reason, and how many more there are."""
    written = _written(run)
    lines = [line for line in run.message.splitlines() if line.strip()]
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    begun = f"{counted(written)}, then: " if written else ""
    return fitting(f"{begun}{lines[0] if lines else run.code or 'failed'}", TEXT - len(more)) + more


def first_line(message: str) -> str:
    """Return the first line of a text that isn't empty."""
    return next((line for line in message.splitlines() if line.strip()), "")
