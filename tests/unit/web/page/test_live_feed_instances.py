"""Open pages of instances: a topic each, for viewers that see them alone; what happens to one asks for its template's row."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from handler.feedback.live_runs import ENDED, LiveRuns
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.model.run_event import HealthChanged, InstanceGone, RunEnded, RunPhase
from handler.web.connection import Collected, EventStream
from handler.web.event_streams import EventStreams
from handler.web.page import live_feed
from handler.web.page.live_feed import LiveFeed
from handler.web.page.overview import OVERVIEW
from tests.patience import until

pytestmark = pytest.mark.slow

MAIN = "grafana.shop.main"


class Pages:
    """A feed of one template, and what its pages were sent."""

    def __init__(self) -> None:
        self.live, self.asked = LiveRuns(), list[tuple[str, Any]]()
        self.commit = "c0"
        self.feed = LiveFeed(self.ask, self.render, ("grafana",))
        self.streams = EventStreams(lambda *_: None, lambda _conn, data: len(data), lambda call, *given: call(*given))
        self.opened: list[EventStream] = []

    def ask(self, question: str, **about: Any) -> dict[str, Any]:
        if question == "changes":
            return self.live.changes(about["boot"], about["since"], about["wait"])
        self.asked.append((question, about.get("names") or about.get("name")))
        if question == "target":
            return {"target": {"target": about["name"], "commit": self.commit}}
        return {"targets": [{"target": name, "commit": self.commit} for name in about["names"]]}

    def render(self, topic: str, data: Any) -> Mapping[str, str]:
        if topic == OVERVIEW:
            return {f"row-{row['target']}": f"{row['target']} at {row['commit']}" for row in data}
        return {"live": f"{topic} at {data['target']['commit']}"}

    def open(self, topic: str, *seen: str) -> bool:
        answer = Collected(self.streams)
        found = self.feed.open({"gunicorn.socket": answer}, topic, seen, time.time() + 600)
        self.opened += [answer.stream] if answer.stream else []
        return found

    def sent(self, place: int) -> str:
        return b"".join(self.opened[place].unsent).decode()


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pages]:
    monkeypatch.setattr(live_feed, "EVERY", 600.0)  # no look at all records heals what a change should have asked for
    made = Pages()
    yield made
    for each in made.opened:
        made.streams.end(each)


def test_an_instance_s_page_is_kept_live(pages: Pages) -> None:
    assert pages.open(MAIN, "grafana", MAIN)
    until(lambda: f"{MAIN} at c0" in pages.sent(0))
    pages.commit = "c1"
    pages.live.hear(HealthChanged(MAIN, "", ""))
    until(lambda: f"{MAIN} at c1" in pages.sent(0))


def test_an_instance_s_page_is_for_those_who_see_it_and_of_a_template_alone(pages: Pages) -> None:
    assert not pages.open(MAIN, "grafana")
    assert not pages.open("other.shop.main", "other.shop.main")
    assert not pages.open("grafana.Shop", "grafana.Shop")
    assert pages.open(MAIN, MAIN)


def test_what_happens_to_an_instance_asks_for_its_template_s_row(pages: Pages) -> None:
    assert pages.open(OVERVIEW, "grafana")
    until(lambda: "grafana at c0" in pages.sent(0))
    pages.commit = "c1"
    pages.live.hear(HealthChanged(MAIN, "", ""))
    until(lambda: "grafana at c1" in pages.sent(0))
    assert {str(about) for _, about in pages.asked} == {"['grafana']"}, "no question an instance"


def ran(pages: Pages, name: str) -> None:
    pages.live.hear(RunPhase(name, f"{name}.1", "c1", "applying"))
    pages.live.hear(RunEnded(Job(name, "tick", run=f"{name}.1"), Result(name, Outcome.APPLIED, run=f"{name}.1"), 1.0))


def test_of_instances_that_ran_the_latest_pictures_are_kept_and_those_of_open_pages(pages: Pages) -> None:
    assert pages.open(OVERVIEW, "grafana")
    assert pages.open(MAIN, "grafana", MAIN)
    ran(pages, MAIN)
    until(lambda: MAIN in pages.feed._live)
    for number in range(ENDED + 20):
        ran(pages, f"grafana.shop.i{number}")
        if number == ENDED // 2:
            until(lambda: f"grafana.shop.i{ENDED // 2}" in pages.feed._live)
    kept = {MAIN, *(f"grafana.shop.i{number}" for number in range(20, ENDED + 20))}
    until(lambda: f"grafana.shop.i{ENDED + 19}" in pages.feed._live)
    assert pages.feed._live.keys() == kept


def test_an_instance_that_is_gone_leaves_no_picture_in_the_page_s_process(pages: Pages) -> None:
    assert pages.open(OVERVIEW, "grafana")
    pages.live.hear(RunPhase(MAIN, f"{MAIN}.1", "c1", "applying"))
    until(lambda: MAIN in pages.feed._live)
    pages.live.hear(InstanceGone(MAIN))
    until(lambda: not pages.feed._live)
