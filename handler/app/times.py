"""Times for people: `5 min ago`, `in 15 s`. Pure."""

from __future__ import annotations

from handler.state.record_format import seconds_of

_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


def span(seconds: float) -> str:
    """Write a duration in its largest whole unit."""
    return next((f"{seconds // size:.0f} {name}" for size, name in _UNITS if seconds >= size), f"{max(seconds, 0):.0f} s")


def brief(seconds: float) -> str:
    """Write a duration as one word, as kubectl does: `15s`, `3h`."""
    return span(seconds).replace(" min", "m").replace(" ", "")


def ago(stamp: str, now: float) -> str:
    """Say how long ago a recorded time was; nothing where there is none."""
    return f"{span(now - seconds_of(stamp))} ago" if stamp else ""


def until(stamp: str, now: float) -> str:
    """Say how far ahead a recorded time is."""
    left = seconds_of(stamp) - now if stamp else 0.0
    return f"in {span(left)}" if left > 0 else "at once"
