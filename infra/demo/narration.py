"""What the demo says: plain lines, coloured on a terminal, and kept for the transcript.

Law: nothing is claimed that wasn't checked. `check` says a line only when it is true and ends the demo otherwise.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

INDENT = "   "
QUIET_SECONDS = 15.0
"""Between two lines about something slow, where no terminal shows them change."""


class DemoFailed(Exception):
    """What the demo shows isn't so, or something it needs is missing."""


@dataclass(frozen=True, slots=True)
class Said:
    """One line, and when it was said: seconds since the beginning."""

    at: float
    text: str
    style: str


class Narrator:
    """Prints the story. `said` is all of it."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self._console = Console(highlight=False, soft_wrap=True)
        self._began = time.monotonic()
        self._steps = 0
        self._waiting = False
        self._told = -QUIET_SECONDS

    @property
    def lively(self) -> bool:
        """Whether a line can be rewritten: output is a terminal."""
        return self._console.is_terminal

    def title(self, text: str) -> None:
        """Say what this is."""
        self._print(text, "bold")

    def step(self, text: str) -> None:
        """Begin the next step."""
        self._steps += 1
        self._print("")
        self._print(f"{self._steps:2} {text}", "bold cyan")

    def say(self, *lines: str) -> None:
        """Tell, a line for each argument."""
        for line in lines:
            self._print(f"{INDENT}{line}".rstrip())

    def command(self, line: str) -> None:
        """Show a command that is run now."""
        self._print(f"{INDENT}$ {line}", "bold")

    def output(self, text: str) -> None:
        """Show what a command printed."""
        for line in text.rstrip("\n").splitlines():
            self._print(f"{INDENT}  {line}".rstrip(), "bright_black")

    def timing(self, text: str) -> None:
        """Show what was measured."""
        self._print(f"{INDENT}⏱ {text}", "yellow")

    def check(self, holds: bool, text: str) -> None:
        """Say it if it is true.

        Raises:
            DemoFailed: it isn't.

        """
        if not holds:
            raise DemoFailed(f"not so: {text}")
        self._print(f"{INDENT}✓ {text}", "green")

    def waiting(self, text: str) -> None:
        """Tell how far something slow is: one line that is rewritten on a terminal, few lines elsewhere. No part of the transcript."""
        if self.lively:
            sys.stdout.write(f"\r\x1b[K{INDENT}{text}")
            sys.stdout.flush()
            self._waiting = True
        elif time.monotonic() - self._told > QUIET_SECONDS:
            self._told = time.monotonic()
            self._console.print(Text(f"{INDENT}{text}"))

    def seconds(self) -> float:
        """Return how long the demo has run."""
        return time.monotonic() - self._began

    def _print(self, text: str, style: str = "") -> None:
        if self._waiting:
            sys.stdout.write("\r\x1b[K")
            self._waiting = False
        self.said.append(Said(self.seconds(), text, style))
        self._console.print(Text(text, style=style))


def normalised(text: str, known: Mapping[str, str]) -> str:
    """Replace what differs from machine to machine; longer texts first, so that a path wins over its parent.

    >>> normalised("http://127.0.0.1:34567/shop.git in /tmp/x/y", {"/tmp/x": "~", "127.0.0.1:34567": "127.0.0.1:3000"})
    'http://127.0.0.1:3000/shop.git in ~/y'
    """
    keys = sorted((key for key in known if key), key=len, reverse=True)
    return re.sub("|".join(map(re.escape, keys)), lambda found: known[found[0]], text) if keys else text
