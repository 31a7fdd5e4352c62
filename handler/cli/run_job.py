"""Runs a job for a waiting person: a moving line or plain ones; Ctrl-C ends the run at its next write, not in the middle of one.

Law of `follow`: what is carried out is the plan that was shown; one that takes its place, because something moved, is shown and asked
about, too. No error of printing ends a run in its middle.
"""

from __future__ import annotations

import contextlib
import math
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from handler.app.run_events import POSTED, SETTLE
from handler.app.run_guard import announced
from handler.cli import diff, logs, reports
from handler.cli.session import Session
from handler.config.instance_target import refuse_template
from handler.config.settings import Target
from handler.engine.reconcile import reconcile
from handler.engine.run.errors import NotPromoted
from handler.feedback.cli import AGAIN
from handler.model.advice import advice
from handler.model.errors import AnnealError, ClusterUnavailable, Stopping
from handler.model.event import Job
from handler.model.instance import template_of
from handler.model.names import Identity
from handler.model.numbers import many
from handler.model.plan import Change, FieldChange, Plan
from handler.model.result import IN_SYNC, Outcome, Result, summed
from handler.plan.adoption import Adoptions
from handler.state.record_values import RunOnce

if TYPE_CHECKING:
    from handler.app.commit_statuses.subscriber import CommitStatuses


def run(session: Session, job: Job, doing: str) -> Result:
    """Run a job. `doing`: what the moving line says."""
    handler = session.handler
    session.sandbox.start()
    with stoppable(session.output.note) as stop, _shown(session, doing):
        return _reported(session, job, _to_the_newest(session, handler.run, job, stop))


def run_as(session: Session, target: Target, job: Job, doing: str, adoptions: Adoptions | None = None) -> Result:
    """Run a job with another spelling of its target, without that counting as a change of its settings.

    `adoptions`: takes what isn't ours yet. Raises ConfigInvalid: it is a template; no record says so.
    """
    refuse_template(target, "has objects of its own")
    session.sandbox.start()
    made = session.handler.dependencies(target.name)
    planner = replace(made.planner, target=target, verdicts={}, adoptions=adoptions)
    adopt = tuple(owner for owner in target.adopts if owner not in made.target.adopts)
    once = RunOnce(adopt, prune=target.prunes_undeclared and not made.target.prunes_undeclared)
    dependencies = replace(made, target=target, planner=planner, agrees=session.agrees, once=once)
    with stoppable(session.output.note) as stop, _shown(session, doing):
        return _reported(session, job, _to_the_newest(session, partial(reconcile, dependencies), job, stop))


@contextlib.contextmanager
def printing(session: Session) -> Iterator[None]:
    """Print on standard error what the runs within this wait for, and what they write; then let git hosts show how they have ended."""
    output = session.output
    statuses = _statuses(session)
    again = math.inf if output.moves else AGAIN
    lines = session.events.add("cli", output.note, session.wrote, again)
    thread = threading.Thread(target=lines.keep, name="run lines", daemon=True)
    thread.start()
    try:
        yield
    finally:
        session.events.remove("cli", SETTLE)
        lines.end()
        thread.join()
        if statuses:
            session.events.remove("statuses", SETTLE)
            if not statuses.settle(POSTED):
                output.note("a git host doesn't show yet how this has ended; a server that runs, or the next run, posts it")


def _statuses(session: Session) -> CommitStatuses | None:
    """Subscribe what posts commit statuses, where runs of targets on git hosts have any."""
    if session.sources or not any(target.has_commit_statuses for target in session.configured):
        return None
    statuses: CommitStatuses = session.events.add("statuses", session.settings, session.handler)
    return statuses


@contextlib.contextmanager
def _shown(session: Session, doing: str) -> Iterator[None]:
    with session.output.working(doing), printing(session):
        yield


def _to_the_newest(session: Session, start: Callable[[Job, threading.Event], Result], job: Job, stop: threading.Event) -> Result:
    """Run a job, and the newer heads that came during its waits; the result is of all, under id and cause of the last run."""
    start = announced(start, session.events.announce)
    ends = [start(job, stop)]
    while ends[-1].outcome is Outcome.SUPERSEDED and ends[-1].again and not stop.is_set():
        session.output.note(f"{ends[-1].message}; going on with that")
        ends.append(start(replace(job, commit="", approve="", unpin=False, rollback=False, promote=False), stop))
    return replace(summed(ends), run=ends[-1].run, trigger=ends[-1].trigger)


def _reported(session: Session, job: Job, result: Result) -> Result:
    again = session.again or session.output.complete(advice("anneal apply {}", result.target))
    if result.code == Stopping.code and not job.dry_run:
        also = "" if session.again else ", and so does the next tick"
        session.output.note(f"what it began stays as it is; {again} goes on with it{also}")
    elif result.outcome is Outcome.SUPERSEDED:
        session.output.note(f"what was asked for goes on {'' if session.again else 'by the next tick, or '}now: {again}")
    return result


def retry(session: Session) -> reports.Retry:
    """Return what says whether a server tries a failed run again, or by which command it is tried."""

    def said(ended: Result) -> str:
        if session.again:
            return f"to {'look' if ended.outcome in IN_SYNC else 'try'} again: {session.again}"
        server = _server(session, ended)
        if server is False:
            what = "look at it" if ended.outcome in IN_SYNC else "try"
            when = f"in {reports.until_next(ended)}" if ended.code == NotPromoted.code else "now"
            return f"no server runs that would {what} again; {when}: {session.output.complete(advice('anneal apply {}', ended.target))}"
        return reports.retried(ended) + ("" if server else ", if a server runs")

    return said


def _server(session: Session, ended: Result) -> bool | None:
    """Whether a running server looks after a run's target; None: that can't be known now."""
    target = session.settings.target(template_of(ended.target))
    if target is None or ended.code == ClusterUnavailable.code:
        return None
    try:
        pulse = session.handler.pulse(target)
    except AnnealError:
        return None
    return pulse.server(target.name) is not None if pulse.readable else None


@contextlib.contextmanager
def stoppable(say: Callable[[str], None]) -> Iterator[threading.Event]:
    """Yield the event that SIGINT and SIGTERM set; the second Ctrl-C interrupts at once."""
    stop = threading.Event()

    def ask() -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        say("stopping at the next write; again to stop at once")

    with _on_signals(ask):
        yield stop


@contextlib.contextmanager
def _on_signals(act: Callable[[], None]) -> Iterator[None]:
    """Let SIGINT and SIGTERM act so; on another than the main thread they can't be caught."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: act()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- a run that is shown and asked about before its first write
Shown = tuple[str, Identity, str, tuple[FieldChange, ...], bytes]


def follow(
    session: Session,
    start: Callable[[], Result],
    *,
    yes: bool,
    approves: Callable[[str], str] | None = None,
    agreed: Plan | None = None,
) -> int:
    """Start a run, ask before it writes where a person can be asked, print what it writes and how it ends; return the exit code.

    `session`: whose handler isn't made yet. `yes`: nothing is asked. `approves`: the command that allows what is held under an id, where
    that isn't `anneal approve`. `agreed`: a plan that was shown and agreed to already.
    """
    following = _Following(session)
    if agreed:
        following.agreed_to(agreed)
    if not yes and session.output.interactive:
        session.agrees = following.agrees
    session.wrote = following.wrote
    ended = start()
    if following.declined and ended.outcome is Outcome.PLANNED:
        session.output.line("nothing was changed", "warn")
        return reports.FAILED
    held = ended.plan.hold if ended.plan and ended.outcome is Outcome.HELD else None
    code = reports.result(session.output, ended, approves(held.id) if held and approves else "", following.printed, retry(session))
    logs.after_failure(session, ended)
    return code


class _Following:
    """The plans and objects of one run that were shown. `printed`: objects whose lines were printed as they were written."""

    def __init__(self, session: Session) -> None:
        self.declined = False
        self.printed: set[Identity] = set()
        self._session = session
        self._agreed: set[Shown] = set()

    def agreed_to(self, plan: Plan) -> None:
        """Take the changes of a plan as agreed to."""
        self._agreed |= _facts(plan)

    def agrees(self, plan: Plan) -> bool:
        """Show a plan and ask; one that changes nothing more than what was agreed to isn't asked about again."""
        self._session.events.drained(SETTLE)
        wanted = _facts(plan)
        if self._agreed and wanted <= self._agreed:
            return True
        output = self._session.output
        with output.still():
            if self._agreed:
                output.line("something moved meanwhile; the plan is another one now:", "warn")
            diff.show(output, plan)
            removed = sum(gone.counted for gone in plan.gone)
            seen = f"{many(removed, 'object')} of {plan.target} would be deleted. " if removed else ""
            self.declined = not self._asked(f"{seen}Go on?")
        if not self.declined:
            self.agreed_to(plan)
        return not self.declined

    def _asked(self, question: str) -> bool:
        try:
            with _on_signals(_interrupt):
                return self._session.output.confirm(question)
        except (click.Abort, KeyboardInterrupt):
            self._session.output.line()
            return False

    def wrote(self, changes: Sequence[Change]) -> None:
        """Print what was written; its fields, where no plan has shown them."""
        if self._session.output.as_json:
            return
        with contextlib.suppress(OSError), self._session.output.still():  # the reader is gone: the run goes on
            for change in changes:
                diff.done(self._session.output, change, fields=not self._agreed)
                self.printed.add(change.identity)


def _facts(plan: Plan) -> set[Shown]:
    found = {
        (plan.commit, each.identity, str(each.action), each.fields, each.manifest.raw if each.manifest else b"") for each in plan.writes
    }
    return found | {(plan.commit, gone.identity, str(gone.cause), (), b"") for gone in plan.lost}


def _interrupt() -> None:
    """End a question: while a run is under way signals only ask for its end, and a read would go on."""
    raise KeyboardInterrupt
