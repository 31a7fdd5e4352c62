"""A repair of what is recorded waits for what it has written, and for nothing else; whatever else runs waits for everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from handler.config.settings import Wait
from handler.engine.waits.wait import Waits
from handler.engine.waits.wait_record import WaitRecord
from handler.model.errors import RolloutFailed
from handler.model.event import Job
from handler.model.result import Outcome
from handler.plan.admission import Desired
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE, state_of
from tests.unit.engine.in_memory_cluster import MAPS, InMemoryCluster

WAITS = replace(ONE, targets=(replace(ONE.targets[0], wait=Wait()),))
ALL = ["one", "two"]


@dataclass
class Watched:
    """What was waited for, by the names of its objects; `sick` is not healthy."""

    sick: str = ""
    asked: list[list[str]] = field(default_factory=list)

    def healthy(self, kept: WaitRecord, items: Sequence[Desired], *_: Any) -> None:
        names = [item.identity.name for item in items]
        self.asked.append(names)
        if self.sick in names:
            raise RolloutFailed.of(f"ConfigMap/shop/{self.sick}", f"isn't healthy ({kept.what})")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    made = Watched()
    monkeypatch.setattr(Waits, "healthy", lambda _, *about: made.healthy(*about))
    return made


@pytest.fixture
def fake(watched: Watched) -> InMemoryCluster:
    """Two objects that were applied and healthy; `one` was then changed by hand, and `two` has an outage."""
    made = InMemoryCluster()
    made.push(dict.fromkeys(ALL, "1"))
    assert made.handler(WAITS).run(Job("shop", "push")).outcome is Outcome.APPLIED
    assert watched.asked == [ALL]
    watched.asked.clear()
    spoil(made)
    watched.sick = "two"
    return made


def spoil(fake: InMemoryCluster) -> None:
    live = fake.live("one")
    assert live
    fake.server.answer(Asked("PUT", f"{MAPS}/one", {}, {**live, "data": {"key": "by hand"}}, "", ""))


def test_an_outage_elsewhere_doesnt_fail_a_repair(fake: InMemoryCluster, watched: Watched) -> None:
    assert fake.handler(WAITS).run(Job("shop", "drift")).outcome is Outcome.APPLIED
    assert (watched.asked, fake.data(*ALL)) == ([["one"]], ["1", "1"])


def test_a_drift_repair_waits_for_health_of_what_it_wrote_and_the_next_run_for_all(fake: InMemoryCluster, watched: Watched) -> None:
    watched.sick = "one"
    assert fake.handler(WAITS).run(Job("shop", "drift")).outcome is Outcome.FAILED
    assert state_of(fake.handler(WAITS)).attempt
    assert fake.handler(WAITS).run(Job("shop", "tick")).outcome is Outcome.FAILED
    assert watched.asked == [["one"], ALL]


@pytest.mark.parametrize("how", ["a newer commit", "a person", "other settings", "no record"])
def test_every_run_but_a_drift_repair_waits_for_the_health_of_everything(fake: InMemoryCluster, watched: Watched, how: str) -> None:
    settings = WAITS
    if how == "a newer commit":
        fake.push({"one": "2", "two": "1"})
    if how == "other settings":
        settings = replace(WAITS, targets=(replace(WAITS.targets[0], namespaces=("shop", "more")),))
    if how == "no record":
        fake.server.answer(Asked("DELETE", "/api/v1/namespaces/anneal-system/configmaps/anneal-shop", {}, {}, "", ""))
    result = fake.handler(settings).run(Job("shop", "push", force=how == "a person"))
    assert (result.outcome, watched.asked) == (Outcome.FAILED, [ALL]), result
