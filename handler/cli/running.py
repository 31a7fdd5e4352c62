"""Runs a job for a person who waits: a moving line, and Ctrl-C that ends the run at its next write instead of in the middle of one."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType

from handler.cli.session import Session
from handler.config.settings import Target
from handler.model.event import Job
from handler.model.result import Result
from handler.reconcile import reconcile


def run(session: Session, job: Job, doing: str) -> Result:
    """Run a job. `doing`: what the moving line says."""
    handler = session.handler
    session.sandbox.start()
    with stoppable(session.output.note) as stop, session.output.working(doing):
        return handler.run(job, stop)


def run_as(session: Session, target: Target, job: Job, doing: str) -> Result:
    """Run a job with another spelling of its target, without that counting as a change of its settings."""
    session.sandbox.start()
    rooms = replace(session.handler.rooms(target.name), target=target)
    with stoppable(session.output.note) as stop, session.output.working(doing):
        return reconcile(rooms, job, stop)


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
