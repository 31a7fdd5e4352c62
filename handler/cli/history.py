"""`anneal history`: the ring of runs that a target's record keeps."""

from __future__ import annotations

import time

from handler.app.times import ago
from handler.cli import reports
from handler.cli.filenames import from_files
from handler.cli.session import Session
from handler.model.numbers import counted
from handler.model.quotation import block
from handler.state.record import Run

_HEADS = ("WHEN", "OUTCOME", "COMMIT", "SUBJECT", "BY", "CHANGES", "SECONDS")
_SUBJECT = 48


@from_files(record=True, number="limit")
def history(session: Session, target: str | None, limit: int) -> int:
    """Show the last runs of TARGET, newest first; -v also what each changed and said."""
    chosen = session.target(target)
    state = session.ways(git=False).brief_store(chosen).read().state
    runs = state.history[:limit] if state else ()
    output = session.output
    if output.as_json:
        output.document({"target": chosen.name, "runs": runs})
    elif not runs:
        none = "has no instance that has ended; each has a history of its own" if chosen.is_template else "never ran"
        output.line(f"{chosen.name} {none}")
    elif output.verbose:
        for run in runs:
            output.line("  ".join(_row(run)))
            for line in (*block(run.message), *run.changed):
                output.line(f"  {line}", "dim")
    else:
        output.table(_HEADS, [_row(run) for run in runs])
    return reports.DONE_CODE


def _row(run: Run) -> tuple[str, ...]:
    times = f", {run.times} times" if run.times > 1 else ""
    subject = run.subject if len(run.subject) <= _SUBJECT else run.subject[: _SUBJECT - 1] + "…"
    when = ago(run.last or run.started, time.time())
    return when, f"{run.outcome}{times}", run.commit[:12], subject, run.asked_by, counted(run.counts), f"{run.duration:.1f}"
