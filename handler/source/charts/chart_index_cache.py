"""The indexes of chart repositories that one render has seen: each is asked for once, however many charts come from it.

Law: they belong to one commit of one run and to the sources of one target, and are gone once that is rendered: the run may wait long, and
the next one asks anew.
"""

from __future__ import annotations

from collections.abc import Callable

from handler.model.chart_url import ChartUrl
from handler.source.charts.chart_limits import ChartLimits


class ChartIndexes:
    """At most `most` bytes are kept; an index that doesn't fit is asked for each time."""

    def __init__(self, most: int = ChartLimits().index) -> None:
        self._left = most
        self._seen: dict[ChartUrl, bytes] = {}

    def __contains__(self, repository: ChartUrl) -> bool:
        return repository in self._seen

    def of(self, repository: ChartUrl, ask: Callable[[], bytes]) -> bytes:
        """Return the index.yaml of a repository as it was seen first. Raises what `ask` raises."""
        found = self._seen.get(repository)
        if found is None:
            found = ask()
            if len(found) <= self._left:
                self._left -= len(found)
                self._seen[repository] = found
        return found
