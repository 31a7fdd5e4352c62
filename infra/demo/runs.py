"""What `anneal serve` logs, as it is written: the end of each run, with its time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from infra.demo.narration import DemoFailed

PATIENCE = 60.0
POLL = 0.01


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the log. `at`: seconds since the epoch."""

    message: str
    at: float
    facts: dict[str, Any] = field(repr=False)

    @property
    def outcome(self) -> str:
        """How the run ended."""
        return str(self.facts.get("outcome", ""))

    @property
    def target(self) -> str:
        """The target that ran."""
        return str(self.facts.get("target", ""))

    @property
    def commit(self) -> str:
        """The commit it was about."""
        return str(self.facts.get("commit", ""))

    @property
    def trigger(self) -> str:
        """What asked for the run."""
        return str(self.facts.get("trigger", ""))

    @property
    def note(self) -> str:
        """What it said of itself."""
        return str(self.facts.get("note", ""))

    @property
    def counts(self) -> dict[str, int]:
        """How many objects were created, configured, pruned."""
        return dict(self.facts.get("counts", {}))

    @property
    def problems(self) -> list[str]:
        """What was refused, a line for each."""
        return list(self.facts.get("problems", ()))


class Log:
    """The log file of `anneal serve`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mark(self) -> int:
        """Return the place where the next line will be."""
        return self.path.stat().st_size if self.path.exists() else 0

    def since(self, mark: int) -> Iterator[Line]:
        """Yield the whole lines after a mark."""
        if not self.path.exists():
            return
        with self.path.open("rb") as handle:
            handle.seek(mark)
            for raw in handle.read().splitlines(keepends=True):
                if raw.endswith(b"\n") and raw.startswith(b"{"):
                    yield _line(raw)

    def wait(self, mark: int, wanted: Callable[[Line], bool], what: str, alive: Callable[[], bool] = lambda: True) -> Line:
        """Return the first line after the mark that is wanted.

        Raises:
            DemoFailed: there was none for a minute, or `alive` is false: the writer has ended.

        """
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            going = alive()
            found = next((line for line in self.since(mark) if wanted(line)), None)
            if found:
                return found
            if not going:
                raise DemoFailed(f"anneal serve has ended while the demo waited for {what}")
            time.sleep(POLL)
        raise DemoFailed(f"waited {PATIENCE:.0f} s in vain for {what}")

    def tail(self, count: int = 15) -> list[str]:
        """Return the last lines."""
        return self.path.read_text(errors="replace").splitlines()[-count:] if self.path.exists() else []


def _line(raw: bytes) -> Line:
    facts = json.loads(raw)
    return Line(str(facts.get("message", "")), datetime.fromisoformat(facts["time"]).timestamp(), facts)
