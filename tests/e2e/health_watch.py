"""A process's health watch over one target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from handler.model.health import HealthState
from handler.model.run_event import HealthChanged, HealthFound, RunEvent
from handler.state.record import TargetHealth
from handler.worker.health_watch.cluster_watch import HealthWatch
from handler.worker.heartbeat_renewal import HeartbeatRenewal
from tests.e2e.one_target import Shop
from tests.patience import until


class Watching:
    """A watch of a shop's health, as a worker keeps it."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.said: list[tuple[str, HealthState]] = []
        settings = replace(shop.settings, health_interval=2.0)
        self.heart = HeartbeatRenewal(settings, shop.handler.records, lambda *_: None)
        self.watch = HealthWatch(settings, shop.handler, self.heart.watched, self._changed)
        self.heart.start()
        self.watch.start()

    def _changed(self, event: RunEvent) -> None:
        if isinstance(event, HealthChanged):
            self.said.append((event.target, HealthState(event.after)))
        elif isinstance(event, HealthFound):
            self.said.extend(event.targets.items())

    def stop(self) -> None:
        """End both."""
        self.watch.stop()
        self.heart.stop()

    def shows(self, state: HealthState, *words: str) -> TargetHealth:
        """Wait until the record says so."""
        until(lambda: self._is(state, words), lambda: str(self.shop.state().health))
        return self.shop.state().health

    def passes(self, number: int) -> None:
        """Wait for so many passes."""
        (cluster,) = self.watch.clusters
        for _ in range(number):
            self._passes(cluster)

    @staticmethod
    def _passes(cluster: Any) -> None:
        before = cluster.passed
        until(lambda: cluster.passed > before)

    def _is(self, state: HealthState, words: tuple[str, ...]) -> bool:
        health = self.shop.state().health
        return health.state == state and all(word in " ".join((*health.worst, *health.notes)) for word in words)


@pytest.fixture
def watching(shop: Shop) -> Iterator[Any]:
    begun: list[Watching] = []

    def begin(of: Shop = shop) -> Watching:
        begun.append(Watching(of))
        return begun[-1]

    yield begin
    for each in begun:
        each.stop()
