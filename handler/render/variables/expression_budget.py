"""How much all expressions of one render may do together: made for one call, so that no text can make another wait or grow without end."""

from __future__ import annotations

from dataclasses import dataclass

MAX_TEXT = 4 << 20
MAX_MADE = 64 << 20
MAX_WORK = 20_000_000


class ExpressionRefused(Exception):
    """An expression that isn't substituted: what was seen, and the way out. It never holds a value. Never leaves the room."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


@dataclass(slots=True)
class ExpressionBudget:
    """What is left of it. Raises ExpressionRefused once there is nothing."""

    made: int = MAX_MADE
    left: int = MAX_WORK

    def make(self, length: int) -> None:
        """Count the characters of a text before it is made."""
        self.bound("text", length, MAX_TEXT)
        self.made -= length
        if self.made < 0:
            raise ExpressionRefused(f"all expressions together make more than {MAX_MADE:,} characters")

    def work(self, steps: int) -> None:
        """Count the steps of a pattern over a text."""
        self.left -= steps
        if self.left < 0:
            raise ExpressionRefused("the patterns of all expressions take too long for the texts that they are for")

    def bound(self, what: str, length: int, most: int) -> None:
        """Refuse what is longer than one such thing may be."""
        if length > most:
            raise ExpressionRefused(f"makes or needs a {what} of {length:,} characters; at most {most:,} are allowed")
