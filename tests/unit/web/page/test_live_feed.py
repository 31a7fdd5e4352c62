"""What open pages get: rendered once for all, only what differs, only what a viewer may see; a thread only while there are viewers."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from handler.feedback.live_runs import LiveRuns
from handler.model.errors import WorkerUnavailable
from handler.model.names import Identity
from handler.model.plan import Action, Change
from handler.model.run_event import HealthChanged, ObjectsWritten, RunPhase
from handler.web.connection import Collected, EventStream
from handler.web.event_streams import EventStreams
from handler.web.page import live_feed
from handler.web.page.live_feed import LiveFeed
from handler.web.page.overview import OVERVIEW
from tests.patience import until

pytestmark = pytest.mark.slow

NAMES = ("shop", "web", "api")
WRITTEN = tuple(Change(Action.UPDATE, Identity("", "ConfigMap", "shop", f"c{number}")) for number in range(3))


class FakeWorker:
    """Answers as the worker does, from rows of the test."""

    def __init__(self) -> None:
        self.live = LiveRuns()
        self.rows = {name: {"target": name, "commit": "c0", "age": 0.0} for name in NAMES}
        self.asked: list[tuple[str, Any]] = []
        self.away = threading.Event()
        self.trouble: set[str] = set()
        self.slow: set[str] = set()

    def ask(self, question: str, **about: Any) -> dict[str, Any]:
        if self.away.is_set():
            raise WorkerUnavailable.of("worker", "doesn't answer")
        if question == "changes":
            return self.live.changes(about["boot"], about["since"], about["wait"])
        self.asked.append((question, about.get("names") or about.get("name")))
        if about.get("name", question) in self.slow:
            raise WorkerUnavailable.of("worker", "doesn't answer")
        if about.get("name") in self.trouble:
            return {"trouble": {"code": "internal", "message": "internal error"}}
        if question == "target":
            return {"target": dict(self.rows[about["name"]])}
        return {"targets": [dict(self.rows[name], age=time.time()) for name in about["names"]]}

    def changed(self, target: str, commit: str) -> None:
        self.rows[target]["commit"] = commit
        self.live.hear(HealthChanged(target, "", ""))

    def count(self, question: str) -> int:
        return sum(each == question for each, _ in self.asked)


class Page:
    """One open page: what its stream was sent; the loop that would send it is this test."""

    def __init__(self, streams: EventStreams, stream: EventStream) -> None:
        self._streams, self._stream = streams, stream

    @property
    def sent(self) -> str:
        return b"".join(self._stream.unsent).decode()

    @property
    def fragments(self) -> list[tuple[str, str]]:
        found = [json.loads(line.removeprefix("data: ")) for line in self.sent.split("\n") if line.startswith("data: ")]
        return [(each["id"], each["html"]) for each in found if each]

    @property
    def last_id(self) -> str:
        return self.sent.rpartition("id: ")[2].partition("\n")[0]

    def close(self) -> None:
        self._streams.end(self._stream)


class Feed:
    """A feed, and the loop that its pages are opened by."""

    def __init__(self) -> None:
        self.worker, self.rendered, self.broken = FakeWorker(), list[tuple[str, Any]](), set[str]()
        self.feed = LiveFeed(self.worker.ask, self._render, NAMES)
        self.streams = EventStreams(lambda *_: None, lambda _conn, data: len(data), lambda call, *given: call(*given))
        self.pages: list[Page] = []
        self.live: Callable[[], str] | None = None
        self.meanwhile: Callable[[], object] = str

    def open(self, topic: str = OVERVIEW, *seen: str, last: str = "", since: str = "") -> Page:
        answer = Collected(self.streams)
        environ = {"gunicorn.socket": answer, "HTTP_LAST_EVENT_ID": last}
        assert self.feed.open(environ, topic, seen or NAMES, time.time() + 60, since=since)
        assert answer.stream
        self.pages.append(Page(self.streams, answer.stream))
        return self.pages[-1]

    def _render(self, topic: str, data: Any) -> Mapping[str, str]:
        self.rendered.append((topic, data))
        self.meanwhile()
        if topic in self.broken:
            raise RuntimeError("a template's mistake")
        if topic == OVERVIEW:
            return {f"row-{row['target']}": row["commit"] for row in data}
        live = self.live() if self.live else json.dumps((data["live"] or {}).get("phase"))
        return {"head": data["target"]["commit"], "live": live}

    @staticmethod
    def threads() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name == "live feed"]


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Feed]:
    for name in ("PACE", "AWAY"):
        monkeypatch.setattr(live_feed, name, 0.01)
    monkeypatch.setattr(live_feed, "WAIT", 0.1)
    monkeypatch.setattr(live_feed, "EVERY", 3600.0)
    made = Feed()
    yield made
    for page in made.pages:
        page.close()
    until(lambda: not made.threads())


def holds(page: Page, *fragment: str) -> Callable[[], bool]:
    return lambda: fragment in page.fragments


def test_a_page_is_told_what_differs_and_nothing_twice(feed: Feed) -> None:
    page = feed.open()
    until(lambda: len(page.fragments) == 3)
    feed.worker.changed("web", "c1")
    until(holds(page, "row-web", "c1"))
    assert sorted(page.fragments) == [("row-api", "c0"), ("row-shop", "c0"), ("row-web", "c0"), ("row-web", "c1")]
    assert feed.rendered[-1] == (OVERVIEW, [{**feed.worker.rows["web"], "age": pytest.approx(time.time(), abs=3600)}])
    assert feed.worker.asked[-1] == ("targets", ["web"]), "the others aren't asked for"


def test_a_row_that_is_only_older_isnt_rendered_again(feed: Feed) -> None:
    page = feed.open()
    until(lambda: len(page.fragments) == 3)
    before = len(feed.rendered)
    feed.worker.changed("web", "c0")
    until(lambda: ("targets", ["web"]) in feed.worker.asked)
    feed.worker.changed("shop", "c1")
    until(holds(page, "row-shop", "c1"))
    assert len(feed.rendered) == before + 1


def test_many_pages_cost_one_question_and_one_rendering(feed: Feed) -> None:
    pages = [feed.open() for _ in range(20)]
    until(lambda: all(len(page.fragments) == 3 for page in pages))
    asked, rendered = feed.worker.count("targets"), len(feed.rendered)
    feed.worker.changed("web", "c1")
    until(lambda: all(("row-web", "c1") in page.fragments for page in pages))
    assert (feed.worker.count("targets"), len(feed.rendered)) == (asked + 1, rendered + 1)
    assert len({id(page._stream.unsent[-1].obj) for page in pages}) == 1, "the bytes are built once"
    assert len(feed.threads()) == 1


def test_a_page_gets_nothing_of_a_target_that_its_viewer_may_not_see(feed: Feed) -> None:
    everything, some = feed.open(), feed.open(OVERVIEW, "web", "unknown")
    until(lambda: len(everything.fragments) == 3 and some.fragments)
    for target in ("shop", "api", "web"):
        feed.worker.changed(target, "c1")
    until(lambda: ("row-web", "c1") in some.fragments and everything.fragments.count(("row-shop", "c1")))
    assert {name for name, _ in some.fragments} == {"row-web"}
    assert "shop" not in some.sent


def test_only_targets_that_a_viewer_sees_are_asked_for(feed: Feed) -> None:
    page = feed.open(OVERVIEW, "web")
    until(lambda: page.fragments)
    feed.worker.changed("shop", "c1")
    feed.worker.changed("web", "c1")
    until(holds(page, "row-web", "c1"))
    assert {name for question, names in feed.worker.asked for name in names if question == "targets"} == {"web"}


def test_a_page_that_sees_more_than_the_ones_before_gets_it(feed: Feed) -> None:
    some = feed.open(OVERVIEW, "web")
    until(lambda: some.fragments)
    more = feed.open()
    assert more.fragments[0] == ("row-web", "c0"), "what is known at once"
    until(lambda: {name for name, _ in more.fragments} == {"row-shop", "row-web", "row-api"})


def test_a_page_that_is_opened_during_a_look_waits_for_no_later_one(feed: Feed) -> None:
    opened: list[Page] = []

    def come() -> None:
        if not opened:
            opened.append(feed.open())

    feed.meanwhile = come
    feed.open(OVERVIEW, "web")
    until(lambda: opened)
    until(lambda: {name for name, _ in opened[0].fragments} == {"row-shop", "row-web", "row-api"})


def test_a_page_that_comes_again_gets_what_changed_meanwhile(feed: Feed) -> None:
    stays, page = feed.open(), feed.open()
    until(lambda: len(stays.fragments) == len(page.fragments) == 3)
    last = page.last_id
    page.close()
    feed.worker.changed("web", "c1")
    until(holds(stays, "row-web", "c1"))
    assert feed.open(last=last).fragments == [("row-web", "c1")]
    assert len(feed.open(last="another-life.99").fragments) == 3
    assert len(feed.open(last=f"{last.partition('.')[0]}.x").fragments) == 3


def test_a_page_gets_only_what_came_after_it_was_asked_for(feed: Feed) -> None:
    """What others were sent before is older than what it shows."""
    stays, target = feed.open(), feed.open("web", "web")
    until(lambda: len(stays.fragments) == 3 and target.fragments)
    since = feed.feed.position
    assert (feed.open(since=since).fragments, feed.open("web", "web", since=since).fragments) == ([], [])
    feed.worker.changed("web", "c1")
    until(holds(stays, "row-web", "c1"))
    page = feed.open(since=since)
    assert page.fragments == [("row-web", "c1")]
    assert feed.open(since=since, last=page.last_id).fragments == [], "what a browser has seen counts more"
    assert len(feed.open(since="another-life.99").fragments) == 3


def test_what_is_only_older_isnt_sent_again(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_feed, "EVERY", 0.01)
    shown = '<p>applied <time datetime="2026-01-01T00:00:00Z">{} s ago</time> {}</p>'
    feed.live = lambda: shown.format(len(feed.rendered), feed.worker.rows["web"]["commit"])
    page = feed.open("web", "web")
    until(lambda: len(feed.rendered) > 3)
    feed.worker.changed("web", "c1")
    until(lambda: "c1</p>" in page.sent)
    assert [html.partition("time> ")[2] for name, html in page.fragments if name == "live"] == ["c0</p>", "c1</p>"]


def test_a_target_is_followed_and_its_record_read_only_where_it_may_have_changed(feed: Feed) -> None:
    page = feed.open("shop", "shop")
    until(holds(page, "live", "null"))
    feed.worker.rows["shop"]["commit"] = "c1"
    feed.worker.live.hear(RunPhase("shop", "shop.1", "c1", "applying"))
    until(holds(page, "live", '"applying"'))
    assert ("head", "c1") in page.fragments
    read = feed.worker.count("target")
    feed.worker.live.hear(ObjectsWritten("shop", "shop.1", WRITTEN))
    until(lambda: feed.rendered[-1][1]["live"]["total"] == 3)
    assert feed.worker.count("target") == read


def test_records_are_looked_at_where_no_change_is_reported(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run elsewhere: a replica, a command."""
    monkeypatch.setattr(live_feed, "EVERY", 0.05)
    page, target = feed.open(), feed.open("web", "web")
    until(lambda: page.fragments and target.fragments)
    feed.worker.rows["web"]["commit"] = "c1"
    until(holds(page, "row-web", "c1"))
    until(holds(target, "head", "c1"))


def test_a_target_whose_cluster_doesnt_answer_is_looked_at_last_and_seldom(feed: Feed) -> None:
    feed.worker.rows["shop"]["trouble"] = {"code": "cluster-unavailable", "message": "away"}
    feed.open("shop", "shop")
    feed.open("web", "web")
    until(lambda: {"shop", "web"} <= {name for question, name in feed.worker.asked if question == "target"})
    topics = feed.feed._topics
    until(lambda: min(topics["shop"].due, topics["web"].due) > 0)
    assert (topics["shop"].troubled, topics["web"].troubled) == (True, False)
    assert topics["shop"].due - topics["web"].due > live_feed.EVERY


def test_pages_are_told_once_that_the_worker_is_away_and_that_it_is_back(feed: Feed) -> None:
    page = feed.open()
    until(lambda: len(page.fragments) == 3)
    feed.worker.away.set()
    until(lambda: "event: away" in page.sent)
    later = feed.open()
    assert later.sent.startswith("event: away\n")
    feed.worker.live = LiveRuns()
    feed.worker.rows["web"]["commit"] = "c1"
    feed.worker.away.clear()
    until(holds(page, "row-web", "c1"))
    until(holds(later, "row-web", "c1"))
    until(lambda: "event: back" in page.sent)
    assert (page.sent.count("event: away"), page.sent.count("event: back")) == (1, 1)


@pytest.mark.parametrize("slow", ["shop", "targets"])
def test_a_question_without_an_answer_stops_no_other_page(feed: Feed, slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.worker.slow.add(slow)
    first = feed.open("shop", "shop") if slow == "shop" else feed.open()
    until(lambda: first.sent.count("event: away"))
    page = feed.open("web", "web")
    until(holds(page, "head", "c0"))
    feed.worker.changed("web", "c1")
    feed.worker.changed("shop", "c1")
    until(holds(page, "head", "c1"))
    monkeypatch.setattr(live_feed, "EVERY", 0.01)
    feed.worker.slow.clear()
    feed.worker.live = LiveRuns()  # another life: all is looked at
    until(lambda: first.fragments and first.sent.count("event: back"))
    assert (first.sent.count("event: away"), first.sent.count("event: back")) == (1, 1)
    assert "event: away" not in page.sent


def test_what_the_record_says_beside_a_run_is_looked_at_while_the_run_writes(feed: Feed) -> None:
    feed.worker.live.hear(RunPhase("shop", "shop.1", "c1", "applying"))
    page = feed.open("shop", "shop")
    until(holds(page, "live", '"applying"'))
    for commit in ("c1", "c2"):
        feed.worker.rows["shop"]["commit"] = commit
        feed.worker.live.hear(HealthChanged("shop", "", "")) if commit == "c1" else feed.worker.live.recorded("shop")
        feed.worker.live.hear(ObjectsWritten("shop", "shop.1", WRITTEN))
        until(holds(page, "head", commit))


def test_a_topic_that_fails_is_its_trouble_alone(feed: Feed, caplog: pytest.LogCaptureFixture) -> None:
    feed.broken.add("shop")
    feed.worker.trouble.add("api")
    feed.open("shop", "shop")
    feed.open("api", "api")
    page = feed.open("web", "web")
    until(lambda: page.fragments)
    until(lambda: sum(record.message == "a page isn't kept live" for record in caplog.records) >= 2)
    feed.worker.changed("web", "c1")
    until(holds(page, "head", "c1"))
    assert "event: away" not in page.sent


def test_without_viewers_there_is_no_thread_and_nothing_is_asked(feed: Feed) -> None:
    assert feed.threads() == []
    page = feed.open()
    until(lambda: page.fragments)
    assert len(feed.threads()) == 1
    page.close()
    until(lambda: not feed.threads())
    again = feed.open()
    until(lambda: len(again.fragments) == 3)


def test_a_viewer_that_comes_while_the_thread_is_about_to_end_is_served(feed: Feed) -> None:
    for _ in range(20):
        page = feed.open()
        until(lambda: page.fragments)  # noqa: B023 - called at once
        assert not feed.feed._left.is_set(), "else it would never rest"
        page.close()
    assert len(feed.threads()) <= 1


def test_where_no_thread_could_be_started_the_next_viewer_starts_one(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    answer = Collected(feed.streams)
    with monkeypatch.context() as crowded:
        crowded.setattr(threading.Thread, "start", full)
        with pytest.raises(RuntimeError):
            feed.feed.open({"gunicorn.socket": answer}, OVERVIEW, NAMES, time.time() + 60)
    assert answer.stream
    feed.streams.end(answer.stream)  # as the loop does where a view fails
    page = feed.open()
    until(lambda: page.fragments)


@pytest.mark.parametrize(("topic", "seen"), [("shop", ("web",)), ("unknown", ("unknown",))])
def test_what_may_not_be_seen_is_not_opened(feed: Feed, topic: str, seen: tuple[str, ...]) -> None:
    assert not feed.feed.open({"gunicorn.socket": Collected(feed.streams)}, topic, seen, time.time() + 60)


def test_a_function_which_has_no_gunicorn_loads_the_feed() -> None:
    code = "import sys; sys.modules['gunicorn'] = None; import handler.web.page.live_feed"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("environ", [{}, {"gunicorn.socket": Collected()}, {"gunicorn.socket": object()}])
def test_elsewhere_than_behind_the_loop_there_is_no_stream(feed: Feed, environ: dict[str, Any]) -> None:
    assert not feed.feed.open(environ, OVERVIEW, NAMES, time.time() + 60)
    assert feed.threads() == []
