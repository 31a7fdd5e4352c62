"""What asks for runs by itself, as `anneal run --trigger NAME` has it: rows beside the webhooks' in `handler.triggers.TRIGGERS`.

Law: a row imports nothing: `anneal run --help` shows it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from handler.model.event import ASKED, RESOURCE

CAUSES = frozenset({"push", "pull-request", "replay", "tick", "drift", RESOURCE, *ASKED})
"""What reports call the runs that Anneal's own parts ask for."""


class AskingWatch(Protocol):
    """Asks for runs until it is stopped."""

    def __call__(self, targets: tuple[str, ...], ask: Callable[[str], None], stop: threading.Event, /) -> None:
        """Ask until `stop` is set, on a thread of its own. What it raises is logged, and it is called again; so it is when it returns.

        `targets`: the names that may be asked for. `ask(name)`: asks for a run, like a push, and waits for nothing; raises ValueError for
        another name. What is asked for while a run goes on is one run more.
        """


class OwnTrigger(StrEnum):
    """What needs no `watch`, for the process does it itself."""

    ONCE = "once"
    CLOCK = "clock"
    OBJECTS = "objects"


@dataclass(frozen=True, slots=True)
class RunTrigger:
    """A row. `about`: one line of the command's help."""

    about: str
    watch: AskingWatch | OwnTrigger


RUN_TRIGGERS: Mapping[str, RunTrigger] = {
    "oneoff": RunTrigger("Runs each target once, and exits with the worst of their ends.", OwnTrigger.ONCE),
    "interval": RunTrigger("Begins at once, then compares live with git each --interval and mends every difference.", OwnTrigger.CLOCK),
    "resource": RunTrigger("Follows the objects of the targets' triggers: each is an instance, run as it changes.", OwnTrigger.OBJECTS),
}


def run_triggers(rows: Mapping[str, object]) -> dict[str, RunTrigger]:
    """Return those of a table's rows that ask for runs."""
    return {name: row for name, row in rows.items() if isinstance(row, RunTrigger)}
