"""What a commit's status says of a run: counts, the first reason, how many more there are. Pure."""

from __future__ import annotations

from handler.model.commit_status import TEXT, fitting
from handler.model.numbers import counted
from handler.model.plan import LOST
from handler.state.record import Run

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
