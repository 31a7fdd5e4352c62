"""The overview: every target that a visitor sees, a row each, found by a search, a filter and a sort. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from handler.app.times import span
from handler.model.result import FAILURES, IN_SYNC, Outcome
from handler.web.page.target_view import STANDINGS, Badge, standing, urgency

Json = Mapping[str, Any]
OVERVIEW = "/"  # the topic of changes of all targets: no target has that name
PAGE = 500  # rows of one answer
_SEARCHED = ("target", "repository", "revision", "path", "cluster", "subject", "author", "commit", "pin", "phase", "health")


@dataclass(frozen=True, slots=True)
class RowView:
    """What a row shows. `row`: of `/api/targets`; `text`: what a search looks at, in lower case."""

    row: Json
    standing: Badge
    runs: Sparkline
    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What a visitor asked for: words that all must be found, a standing's key, an order, a page from 1."""

    words: str = ""
    state: str = ""
    order: str = "urgency"
    page: int = 1


_ORDERS: Mapping[str, Callable[[RowView], Any]] = {
    "urgency": lambda view: (urgency(view.standing), view.row["target"]),
    "name": lambda view: view.row["target"],
    "cluster": lambda view: (view.row["cluster"], view.row["target"]),
    "repository": lambda view: (view.row["repository"], view.row["target"]),
}
ORDERS = (*_ORDERS, "newest")


@dataclass(frozen=True, slots=True)
class FoundTargets:
    """`rows`: of this page; `counts`: targets by standing, of all that the search found; `total`: of all; `page` of `pages`: which this is.

    Of a standing without targets it has a zero: what changes later may need its place.
    """

    rows: tuple[RowView, ...]
    counts: tuple[tuple[Badge, int], ...]
    found: int
    total: int
    page: int
    pages: int

    @property
    def strip(self) -> list[tuple[str, int, str]]:
        """The parts of the strip above them: colour, how many, key."""
        return [(each.tone, number, each.key) for each, number in self.counts]

    @property
    def matching(self) -> int:
        """How many targets the search found, whatever their standing."""
        return sum(number for _, number in self.counts)


def row_view(row: Json) -> RowView:
    """Return what a row shows."""
    found = standing(row)
    return RowView(row, found, sparkline(row["recent"]), " ".join([*(str(row[name]) for name in _SEARCHED), found.word]).lower())


def choice(query: Mapping[str, str]) -> Choice:
    """Read what was asked for; what makes no sense counts as not written."""
    state, order, page = query.get("state", ""), query.get("sort", ""), query.get("page", "")
    known = {each.key for each in STANDINGS}
    number = int(page) if page.isascii() and page.isdigit() and 0 < len(page) < 5 else 1
    return Choice(query.get("q", "")[:200], state if state in known else "", order if order in ORDERS else "urgency", max(number, 1))


def link(asked: Choice, **other: Any) -> str:
    """Return the address of the same overview with another choice; what is usual is left out."""
    wanted = replace(asked, **{"page": 1, **other})
    parts = {"q": wanted.words, "state": wanted.state, "sort": wanted.order if wanted.order != Choice().order else ""}
    parts["page"] = str(wanted.page) if wanted.page > 1 else ""
    query = urlencode({name: text for name, text in parts.items() if text})
    return f"/?{query}" if query else "/"


def overview(rows: Iterable[Json], asked: Choice) -> FoundTargets:
    """Return what the overview shows."""
    views = [row_view(row) for row in rows]
    words = asked.words.lower().split()
    matching = [view for view in views if all(word in view.text for word in words)]
    counts = Counter(view.standing for view in matching)
    chosen = _ordered([view for view in matching if asked.state in ("", view.standing.key)], asked.order)
    pages = max(-(-len(chosen) // PAGE), 1)
    page = min(asked.page, pages)
    first = (page - 1) * PAGE
    listed = tuple((each, counts[each]) for each in STANDINGS)
    return FoundTargets(tuple(chosen[first : first + PAGE]), listed, len(chosen), len(views), page, pages)


def _ordered(views: Sequence[RowView], order: str) -> list[RowView]:
    if order == "newest":
        return sorted(sorted(views, key=_ORDERS["name"]), key=lambda view: str(view.row["applied"]), reverse=True)
    return sorted(views, key=_ORDERS[order])


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
