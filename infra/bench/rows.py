"""A row of the budget (DESIGN.md section 10): what was measured, what is asked, whether it holds."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """One line. `measured` and `budget` in `unit`; `better`: "lower" or "higher"; `details`: the figures behind it."""

    name: str
    measured: float
    budget: float
    unit: str
    better: str = "lower"
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        """Whether the budget holds."""
        return self.measured <= self.budget if self.better == "lower" else self.measured >= self.budget

    def line(self) -> str:
        """Write the row for people."""
        sign = "≤" if self.better == "lower" else "≥"
        rest = ", ".join(f"{key} {_short(value)}" for key, value in self.details.items())
        return (
            f"{'met   ' if self.met else 'MISSED'}  {self.name}: {_short(self.measured)} {self.unit} ({sign} {_short(self.budget)})  {rest}"
        )

    def plain(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return {**asdict(self), "met": self.met}


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def timed(action: Callable[[], T]) -> tuple[float, T]:
    """Return how long an action took, in seconds, and its result."""
    gc.collect()
    since = time.perf_counter()
    result = action()
    return time.perf_counter() - since, result


def median(action: Callable[[], Any], times: int = 5) -> float:
    """Return the median time of an action, in seconds."""
    return statistics.median(timed(action)[0] for _ in range(times))
