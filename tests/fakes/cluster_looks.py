"""Looks at clusters of which one hangs: that one has the deadline, and the others whatever time a busy machine needs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any

from handler.app.cluster_looks import ClusterLooks
from tests.patience import PATIENCE


class OneHangs(ClusterLooks):
    """The real ones, but for how long those are waited for that don't hang. `place`: the one that does."""

    def __init__(self, deadline: float, place: Hashable) -> None:
        super().__init__(deadline)
        self._place = place
        self._hung: set[Future[Any]] = set()

    def _join(self, place: Hashable, look: Callable[[], Any]) -> Future[Any]:
        found = super()._join(place, look)
        if place == self._place:
            self._hung.add(found)
        return found

    def _awaited(self, future: Future[Any], end: float, seconds: float) -> Any:
        return super()._awaited(future, end if future in self._hung else end + PATIENCE, seconds)
