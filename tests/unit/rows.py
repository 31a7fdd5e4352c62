"""One test of many rows: a case for each costs more than most rows take, and proves no more."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

SHOWN = 300
"""Characters of a row that are shown."""
Test = Callable[..., None]


def each_row(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Check all rows in one case, which names each that fails. All share the fixtures: a row must leave nothing to the next."""
    keys, listed = ([names] if isinstance(names, str) else list(names)), list(rows)
    assert listed, "no row, no test"

    def in_one(test: Test) -> Test:
        @functools.wraps(test)
        def checked(**fixtures: Any) -> None:
            faults: list[tuple[Any, BaseException]] = []
            for row in listed:
                try:
                    test(**fixtures, **dict(zip(keys, [row] if isinstance(names, str) else row, strict=True)))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - whatever it is, the row is named and the rest is checked
                    faults.append((row, error))
            if faults:
                told = "\n".join(f"{f'{row!r}'[:SHOWN]}: {type(error).__name__}: {error}" for row, error in faults)
                raise AssertionError(f"{len(faults)} of {len(listed)} rows:\n{told}") from faults[0][1]

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        checked.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]  # what pytest asks fixtures by
        return checked

    return in_one
