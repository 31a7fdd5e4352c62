"""The last runs of a target as small bars: how each ended by its colour and its word, how long it took by its height. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handler.app.times import span
from handler.model.result import FAILURES, IN_SYNC, Outcome

HEIGHT, WIDTH, GAP = 20, 6, 2
_LONGEST = 300.0  # seconds of a run that fills the height
_TONES = (
    *((outcome, "good") for outcome in IN_SYNC),
    *((outcome, "bad") for outcome in FAILURES),
    (Outcome.HELD, "warn"),
    (Outcome.DRIFTED, "warn"),
    (Outcome.WAITING, "moving"),
)
_BY_OUTCOME: Mapping[str, str] = {str(outcome): tone for outcome, tone in _TONES}


@dataclass(frozen=True, slots=True)
class Bar:
    """One run. `x`, `y`, `height`: its place in the picture; `word`: for people."""

    x: int
    y: int
    height: int
    tone: str
    word: str


@dataclass(frozen=True, slots=True)
class Sparkline:
    """The picture, the newest run at the right. `text`: the same in words."""

    bars: tuple[Bar, ...]
    width: int
    text: str


def sparkline(recent: Sequence[Mapping[str, Any]]) -> Sparkline:
    """Draw runs. `recent`: `outcome`, `seconds` of each, the newest first."""
    bars = tuple(_bar(place, run) for place, run in enumerate(reversed(recent)))
    words = ", ".join(str(run["outcome"]) for run in recent)
    return Sparkline(bars, max(len(bars) * (WIDTH + GAP) - GAP, 1), f"last runs, newest first: {words}" if words else "no run yet")


def _bar(place: int, run: Mapping[str, Any]) -> Bar:
    outcome, seconds = str(run["outcome"]), float(run["seconds"])
    share = min(math.log1p(max(seconds, 0.0)) / math.log1p(_LONGEST), 1.0)
    height = round(4 + (HEIGHT - 4) * share)
    return Bar(place * (WIDTH + GAP), HEIGHT - height, height, tone_of(outcome), f"{outcome}, {span(seconds)}")


def tone_of(outcome: str) -> str:
    """Return the colour of a run's end."""
    return _BY_OUTCOME.get(outcome, "quiet")
