"""A run that a person follows: the plan is shown and asked about before its first write, and what is written is printed as it goes.

Law: what is carried out is the plan that was shown; one that takes its place, because something moved, is shown and asked about, too. No
error of printing ends a run in its middle.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import click

from handler.app.run_events import SETTLE
from handler.cli import diff, logs, reports
from handler.cli.run_job import retry
from handler.cli.session import Session
from handler.model.names import Identity
from handler.model.numbers import many
from handler.model.plan import Change, FieldChange, Plan
from handler.model.result import Outcome, Result

Shown = tuple[str, Identity, str, tuple[FieldChange, ...], bytes]


def follow(session: Session, start: Callable[[], Result], *, yes: bool, approves: Callable[[str], str] | None = None) -> int:
    """Start a run, ask before it writes where a person can be asked, print what it writes and how it ends; return the exit code.

    `session`: whose handler isn't made yet. `yes`: nothing is asked. `approves`: the command that allows what is held under an id, where that
    isn't `anneal approve`.
    """
    following = _Following(session)
    if not yes and session.output.interactive:
        session.agrees = following.agrees
    session.wrote = following.wrote
    ended = start()
    if following.declined and ended.outcome is Outcome.PLANNED:
        session.output.line("nothing was changed", "warn")
        return reports.FAILED
    again = "the same command" if session.from_files else ""
    held = ended.plan.hold if ended.plan and ended.outcome is Outcome.HELD else None
    code = reports.result(session.output, ended, approves(held.id) if held and approves else "", following.told, retry(session, again))
    logs.after_failure(session, ended)
    return code


class _Following:
    """The plans and objects of one run that were shown. `printed`: objects whose lines were printed as they were written."""

    def __init__(self, session: Session) -> None:
        self.declined = False
        self.told: set[Identity] = set()
        self._session = session
        self._agreed: set[Shown] = set()

    def agrees(self, plan: Plan) -> bool:
        """Show a plan and ask; one that changes nothing more than what was agreed to isn't asked about again."""
        self._session.events.drained(SETTLE)
        wanted = {_shown(plan, change) for change in plan.writes}
        if self._agreed and wanted <= self._agreed:
            return True
        output = self._session.output
        with output.still():
            if self._agreed:
                output.line("something moved meanwhile; the plan is another one now:", "warn")
            diff.show(output, plan)
            removed = sum(change.removes for change in plan.changes)
            seen = f"{many(removed, 'object')} of {plan.target} would be deleted. " if removed else ""
            self.declined = not self._asked(f"{seen}Go on?")
        self._agreed |= set() if self.declined else wanted
        return not self.declined

    def _asked(self, question: str) -> bool:
        try:
            with _interruptible():
                return self._session.output.confirm(question)
        except (click.Abort, KeyboardInterrupt):
            self._session.output.line()
            return False

    def wrote(self, changes: Sequence[Change]) -> None:
        """Tell what was written; its fields, where no plan has shown them."""
        if self._session.output.as_json:
            return
        with contextlib.suppress(OSError), self._session.output.still():  # nobody reads: the run goes on
            for change in changes:
                diff.done(self._session.output, change, fields=not self._agreed)
                self.told.add(change.identity)


def _shown(plan: Plan, change: Change) -> Shown:
    """Return what a person has seen of a change, and what stands behind it."""
    return plan.commit, change.identity, str(change.action), change.fields, change.manifest.raw if change.manifest else b""


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let a signal end a question: while a run is under way it only asks for its end, and a read would go on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
