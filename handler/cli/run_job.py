"""Runs a job for a waiting person: a moving line or plain ones; Ctrl-C ends the run at its next write, not in the middle of one."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import FrameType

from handler.app.run_events import SETTLE
from handler.cli import reports
from handler.cli.session import Session
from handler.config.settings import Target
from handler.engine.reconcile import reconcile
from handler.feedback.cli import AGAIN
from handler.model.errors import AnnealError, ClusterUnavailable, Stopping
from handler.model.event import Job
from handler.model.result import Outcome, Result, summed


def run(session: Session, job: Job, doing: str) -> Result:
    """Run a job. `doing`: what the moving line says."""
    handler = session.handler
    session.sandbox.start()
    with stoppable(session.output.note) as stop, _shown(session, doing):
        return _told(session, _to_the_newest(session, handler.run, job, stop))


def run_as(session: Session, target: Target, job: Job, doing: str) -> Result:
    """Run a job with another spelling of its target, without that counting as a change of its settings."""
    session.sandbox.start()
    rooms = replace(session.handler.rooms(target.name), target=target)
    with stoppable(session.output.note) as stop, _shown(session, doing):
        return _told(session, _to_the_newest(session, partial(reconcile, rooms), job, stop))


@contextlib.contextmanager
def told(session: Session) -> Iterator[None]:
    """Print on standard error what the runs within this wait for, and what they write."""
    output = session.output
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


@contextlib.contextmanager
def _shown(session: Session, doing: str) -> Iterator[None]:
    with session.output.working(doing), told(session):
        yield


def _to_the_newest(session: Session, start: Callable[[Job, threading.Event], Result], job: Job, stop: threading.Event) -> Result:
    """Run a job, and go on with the newer head where one came while its commit was waited for.

    The result is of all of that, under the id and the cause of the last run: the record has that of each.
    """
    ends = [start(job, stop)]
    while ends[-1].outcome is Outcome.SUPERSEDED and ends[-1].again and not stop.is_set():
        session.output.note(f"{ends[-1].message}; going on with that")
        ends.append(start(replace(job, commit="", approve="", unpin=False, rollback=False), stop))
    return replace(summed(ends), run=ends[-1].run, trigger=ends[-1].trigger)


def _told(session: Session, result: Result) -> Result:
    """Print what goes on with a run that was stopped, or that another one took over from."""
    if result.code == Stopping.code:
        again = session.output.complete(f"anneal apply {result.target}")
        session.output.note(f"what it began stays as it is; {again} goes on with it, and so does the next tick")
    elif result.outcome is Outcome.SUPERSEDED:
        again = session.output.complete(f"anneal apply {result.target}")
        session.output.note(f"what was asked for goes on by the next tick, or now: {again}")
    return result


def retry(session: Session, again: str = "") -> reports.Retry:
    """Return what says whether a server tries a failed run again, or by which command it is tried.

    `again`: that command, where it isn't `anneal apply`.
    """

    def said(ended: Result) -> str:
        server = _server(session, ended)
        if server is False:
            return f"no server runs that would try again; now: {again or session.output.complete(f'anneal apply {ended.target}')}"
        if server is None and again:
            return f"to try again: {again}"
        return reports.retried(ended) + ("" if server else ", if a server runs")

    return said


def _server(session: Session, ended: Result) -> bool | None:
    """Tell whether a running server looks after a run's target; None: that can't be known now."""
    target = session.settings.target(ended.target)
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
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        say("stopping at the next write; again to stop at once")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
