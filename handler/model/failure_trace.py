"""Where an exception comes from, for logs and reports.

Law: of an exception its class is shown, and where it was raised. What it says is shown only of our own errors: others quote what they
were given.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

from handler.model.errors import AnnealError

_ROOT = f"{Path(__file__).resolve().parents[2]}/"


def raised(error: BaseException) -> str:
    """Return an exception's class and the line that raised it, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at {place(frames[-1].filename, frames[-1].lineno)}" if frames else type(error).__name__


def place(file: str, line: int | None) -> str:
    """Return `file:line` of code, without where it is installed."""
    return f"{file.removeprefix(_ROOT).rpartition('/site-packages/')[2]}:{line or 0}"


def trace(error: BaseException) -> str:
    """Return the lines that led to an exception, and before them those of what it followed from."""
    return "\n".join(_lines(error, set()))


def _lines(error: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and id(before) not in seen:
        yield from _lines(before, seen)
        yield "which led to:"
    yield from (f"  {place(each.filename, each.lineno)} in {each.name}" for each in traceback.extract_tb(error.__traceback__))
    yield f"{type(error).__name__}: {error}" if isinstance(error, AnnealError) else type(error).__name__
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _lines(each, seen)
