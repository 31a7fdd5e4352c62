"""Bodies of objects as the server holds them: JSON values."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def copied(value: T) -> T:
    """Return a copy of a JSON value, many times as fast as `copy.deepcopy` would: the model's server copies more than it does else."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}  # type: ignore[return-value]  # a dict of the same
    if isinstance(value, list):
        return [copied(item) for item in value]  # type: ignore[return-value]  # a list of the same
    return value
