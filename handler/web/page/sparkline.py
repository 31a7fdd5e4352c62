"""The last runs of a target as small bars: how each ended by its colour and its word, how long it took by its height. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from handler.app.times import span
from handler.model.result import FAILURES, IN_SYNC, Outcome

HEIGHT, WIDTH, GAP = 20, 6, 2
_LEAST = 6  # of the height: a run that took no time is seen, too
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
    """One run. `x`, `y`, `height`: its place in the picture."""

    x: int
    y: int
    height: int
    tone: str


@dataclass(frozen=True, slots=True)
class Sparkline:
    """The picture, the newest run at the right. `paths`: the bars of each colour as one path; `text`: the same in words."""

    bars: tuple[Bar, ...]
    paths: tuple[tuple[str, str], ...]
    width: int
    text: str


def sparkline(recent: Sequence[Mapping[str, Any]]) -> Sparkline:
    """Draw runs. `recent`: `outcome`, `seconds` of each, the newest first."""
    return _drawn(tuple((str(run["outcome"]), float(run["seconds"])) for run in recent))


@lru_cache(2048)  # an overview has hundreds, and most are as they were
def _drawn(runs: tuple[tuple[str, float], ...]) -> Sparkline:
    bars = tuple(_bar(place, outcome, seconds) for place, (outcome, seconds) in enumerate(reversed(runs)))
    words = ", ".join(f"{outcome} in {span(seconds)}" for outcome, seconds in runs)
    paths = tuple((tone, "".join(_path(bar) for bar in bars if bar.tone == tone)) for tone in dict.fromkeys(bar.tone for bar in bars))
    return Sparkline(bars, paths, max(len(bars) * (WIDTH + GAP) - GAP, 1), f"last runs, newest first: {words}" if words else "no run yet")


def _path(bar: Bar) -> str:
    return f"M{bar.x} {bar.y}h{WIDTH}v{bar.height}h-{WIDTH}z"


def _bar(place: int, outcome: str, seconds: float) -> Bar:
    share = min(math.log1p(max(seconds, 0.0)) / math.log1p(_LONGEST), 1.0)
    height = round(_LEAST + (HEIGHT - _LEAST) * share)
    return Bar(place * (WIDTH + GAP), HEIGHT - height, height, tone_of(outcome))


def tone_of(outcome: str) -> str:
    """Return the colour of a run's end."""
    return _BY_OUTCOME.get(outcome, "quiet")
