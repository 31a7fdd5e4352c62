"""Questions for metrics: who judges never waits for an answer but the first, and a hanging Prometheus holds up no other question."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from handler.engine.rollout_runner import metric_poller
from handler.engine.rollout_runner.metric_poller import MetricPoller
from handler.model.errors import Stopping
from handler.model.rollout import Moments, Sample
from handler.prometheus.client import MetricsUnavailable
from tests.patience import PATIENCE, until

pytestmark = pytest.mark.slow


class Slow:
    """Answers when it is let go. `asked`: so many times."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.asked: list[tuple[Any, ...]] = []
        self.error: Exception | None = None

    def __call__(self, url: str, query: str, seconds: float = 0.0, step: float = 0.0) -> Moments:
        self.asked.append((url, query, seconds, step))
        assert self.let_go.wait(PATIENCE)
        if self.error:
            raise self.error
        return [[Sample({}, float(len(self.asked)))]]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first answer that is here at once is waited for, however busy the machine is."""
    monkeypatch.setattr(metric_poller, "FIRST", PATIENCE)


def answer(ask: MetricPoller, *question: Any) -> Moments:
    """Look until the answer is here."""
    return until(lambda: ask(*question), "no answer")


def test_the_first_answer_is_waited_for_and_later_ones_are_not() -> None:
    slow = Slow()
    slow.let_go.set()
    ask = MetricPoller(slow, lambda: None)
    assert ask("", "up") == [[Sample({}, 1.0)]]
    slow.let_go.clear()
    assert ask("", "up") is None
    assert ask("", "up") is None
    assert ask.open
    slow.let_go.set()
    assert answer(ask, "", "up") == [[Sample({}, 2.0)]]
    assert slow.asked == [("", "up", 0.0, 0.0)] * 2


def test_a_wait_for_the_first_metric_still_stops_with_the_run() -> None:
    slow, looks = Slow(), []

    def look() -> None:
        looks.append(1)
        if len(looks) == 2:
            raise Stopping.of("target shop", "the worker is shutting down")

    with pytest.raises(Stopping):
        MetricPoller(slow, look)("", "up")
    slow.let_go.set()


def test_a_first_answer_that_does_not_come_is_awaited_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric_poller, "FIRST", 0.0)
    slow = Slow()
    assert MetricPoller(slow, lambda: None)("", "up") is None
    slow.let_go.set()


def test_a_hanging_metric_query_holds_up_only_itself() -> None:
    slow = Slow()
    slow.let_go.set()

    def ask_one(url: str, query: str, seconds: float = 0.0, step: float = 0.0) -> Moments | None:
        return slow(url, query, seconds, step) if query == "slow" else [[Sample({}, 7.0)]]

    ask = MetricPoller(ask_one, lambda: None)
    assert ask("", "quick") == [[Sample({}, 7.0)]]
    slow.let_go.clear()
    assert ask("", "slow", 60.0, 15.0) is None
    assert answer(ask, "", "quick") == [[Sample({}, 7.0)]]
    assert ask.open
    slow.let_go.set()
    assert answer(ask, "", "slow", 60.0, 15.0) == [[Sample({}, 1.0)]]


def test_an_error_of_a_metric_query_is_raised_to_its_asker_and_the_next_query_is_new() -> None:
    slow = Slow()
    slow.let_go.set()
    slow.error = MetricsUnavailable.of("prometheus", "can't be reached")
    ask = MetricPoller(slow, lambda: None)
    with pytest.raises(MetricsUnavailable, match="can't be reached"):
        ask("", "up")
    slow.error = None
    assert answer(ask, "", "up") == [[Sample({}, 2.0)]]


def test_a_metric_query_without_an_answer_is_given_up_and_sent_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric_poller, "FIRST", 0.0)
    slow = Slow()
    ask = MetricPoller(slow, lambda: None)
    assert ask("http://127.0.0.1", "up") is None
    monkeypatch.setattr(metric_poller, "ABANDONED", -1.0)
    with pytest.raises(MetricsUnavailable, match=r"prometheus http://127.0.0.1: hasn't answered"):
        ask("http://127.0.0.1", "up")
    assert not ask.open
    monkeypatch.setattr(metric_poller, "ABANDONED", PATIENCE)
    slow.let_go.set()
    assert answer(ask, "http://127.0.0.1", "up")
