"""What the samples of a metric say together: whether it keeps failing, and whether it gets better. Pure.

Law: nothing of it is counted by us. The samples are asked of Prometheus over the time that counts, from the step's begin on and one each
interval; so no restart, no pause and no second process makes it more or fewer of them. One without a number counts for nothing: it neither
fails nor ends a row of failures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handler.model.metric_sample import Sample
from handler.rollout.json_values import ordered, same

_LESS, _MORE = ("<", "<="), (">", ">=")


@dataclass(frozen=True, slots=True)
class Threshold:
    """A comparison: `<`, `<=`, `>`, `>=`, `==`, `!=` and a number. `text`: both, as its author wrote them."""

    text: str
    order: str
    number: float

    @classmethod
    def of(cls, text: str) -> Threshold:
        """Read it as a check's options have it: `< 0.01`."""
        order, number = text.split(" ")
        return cls(text, order, float(number))

    def holds(self, value: float) -> bool:
        """Whether a value is as asked; NaN is never."""
        if math.isnan(value):
            return False
        if self.order in ("==", "!="):
            return same(value, self.number) == (self.order == "==")
        return ordered(value, self.order, self.number)

    def short_of(self, value: float) -> float:
        """Return how far a value is from what is asked: the larger, the worse. Of what only mustn't be a number, none is worse."""
        if self.order == "!=" or same(value, self.number):
            return 0.0
        away = value - self.number
        return away if self.order in _LESS else -away if self.order in _MORE else abs(away)


@dataclass(frozen=True, slots=True)
class SampleSeen:
    """One sample. `at`: seconds since the epoch; `good`: None: no number; `value`: of the worst series, None: no number."""

    at: float
    good: bool | None
    value: float | None


def worst(samples: Sequence[Sample], wanted: Threshold) -> float | None:
    """Return the value that is furthest from what is asked; None: there is none."""
    values = [sample.value for sample in samples if not math.isnan(sample.value)]
    return max(values, key=wanted.short_of, default=None)


def failed_in_a_row(seen: Sequence[SampleSeen]) -> list[SampleSeen]:
    """Return the newest samples that failed one after the other, in their order; those without a number are passed over."""
    return [*_failed_backwards(seen)][::-1]


def _failed_backwards(seen: Sequence[SampleSeen]) -> Iterator[SampleSeen]:
    for each in reversed(seen):
        if each.good:
            return
        if each.good is False:
            yield each


def is_stuck(seen: Sequence[SampleSeen], wanted: Threshold) -> bool:
    """Whether none of these samples was as asked, or better than the first; one that begins or ends without a number says nothing."""
    if len(seen) < 2 or seen[0].value is None or seen[-1].value is None or any(each.good for each in seen):
        return False
    first = wanted.short_of(seen[0].value)
    return all(wanted.short_of(each.value) >= first for each in seen[1:] if each.value is not None)
