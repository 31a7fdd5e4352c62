"""What a query for metrics finds. Pure values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of an instant vector: its labels and its value, which may be infinite or NaN."""

    labels: Mapping[str, str]
    value: float


Moments = Sequence[Sequence[Sample]]
"""What a query finds at each of several moments, the newest last; never none of them."""
