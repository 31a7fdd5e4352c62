"""A host's lane: one look at a time, the sooner of two, pauses that grow, a thread that ends, names alone in memory."""

from __future__ import annotations

import threading
import time

import pytest

from handler.app.commit_statuses import host_lane
from handler.app.commit_statuses.host_lane import DueLook, StatusLane
from handler.model.backoff import Backoff
from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable, GitUnavailable
from handler.model.host_answer import HostBusy
from tests.patience import PATIENCE


class Looks:
    """What a lane calls; `meets`: raised by the next looks, in this order."""

    def __init__(self, *meets: AnnealError) -> None:
        self.made: list[DueLook] = []
        self.meets = list(meets)
        self.lane = StatusLane(self.look)

    def look(self, due: DueLook) -> None:
        self.made.append(due)
        if self.meets:
            raise self.meets.pop(0)

    def settled(self) -> bool:
        return self.lane.settle(time.monotonic() + PATIENCE)


def test_looks_for_one_target_are_one_with_all_that_was_heard() -> None:
    looks, gate = Looks(), threading.Event()

    def look(due: DueLook) -> None:
        gate.wait(PATIENCE)
        looks.look(due)

    held = StatusLane(look)
    held.add(DueLook("other", 0.0))
    held.add(DueLook("shop", time.monotonic() + 60, frozenset({"a"})))
    held.add(DueLook("shop", 0.0, frozenset({"b"})))
    gate.set()
    assert held.settle(time.monotonic() + PATIENCE)
    assert [(due.target, due.news) for due in looks.made] == [("other", frozenset()), ("shop", frozenset({"a", "b"}))]


def test_a_host_that_asks_for_a_pause_is_left_alone_with_all_its_targets() -> None:
    looks = Looks(HostBusy.until("API", "429", 3600.0))
    looks.lane.add(DueLook("shop", 0.0, frozenset({"a"})))
    assert not looks.settled()
    looks.lane.add(DueLook("cart", 0.0))
    assert not looks.settled()
    assert [due.target for due in looks.made] == ["shop"]


def test_what_a_failed_look_had_heard_is_no_news_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.app.commit_statuses.host_lane.TRANSIENT", Backoff(0.01, 0.02))
    looks = Looks(GitUnavailable.of("API", "down"), GitUnavailable.of("API", "down"), ClusterUnavailable.of("API server", "down"))
    looks.lane.add(DueLook("shop", 0.0, frozenset({"a"})))
    assert looks.settled()
    assert [(due.news, due.failures) for due in looks.made] == [
        (frozenset({"a"}), 0),
        (frozenset(), 1),
        (frozenset(), 2),
        (frozenset(), 3),
    ]


def test_what_only_a_person_can_mend_waits_longest_and_holds_up_no_other_target() -> None:
    looks = Looks(AccessDenied.of("API", "401"))
    looks.lane.add(DueLook("shop", 0.0))
    assert not looks.settled()
    looks.lane.add(DueLook("cart", 0.0))
    assert not looks.settled()
    assert [due.target for due in looks.made] == ["shop", "cart"]


def test_a_lane_whose_thread_cant_start_works_at_the_next_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    looks = Looks()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError):
            looks.lane.add(DueLook("shop", 0.0))
    looks.lane.add(DueLook("cart", 0.0))
    assert looks.settled()
    assert {due.target for due in looks.made} == {"shop", "cart"}


def test_an_unexpected_exception_ends_one_look_alone(caplog: pytest.LogCaptureFixture) -> None:
    made = []

    def look(due: DueLook) -> None:
        made.append(due.target)
        if due.target == "shop":
            raise KeyError("state")

    lane = StatusLane(look)
    lane.add(DueLook("shop", 0.0))
    assert lane.settle(time.monotonic() + PATIENCE)
    lane.add(DueLook("cart", 0.0))
    assert lane.settle(time.monotonic() + PATIENCE)
    assert made == ["shop", "cart"]
    assert "commit statuses aren't posted" in caplog.text


def test_the_reason_of_a_wait_is_logged_once_as_long_as_it_is_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("handler.app.commit_statuses.host_lane.TRANSIENT", Backoff(0.01, 0.01))
    looks = Looks(*(GitUnavailable.of("API", "down") for _ in range(5)), AccessDenied.of("API", "401"), AccessDenied.of("API", "401"))
    looks.lane.add(DueLook("shop", 0.0))
    assert looks.settled()
    assert [each.fields["code"] for each in caplog.records] == ["git-unavailable", "access-denied"]  # type: ignore[attr-defined]  # ours


def test_a_thread_ends_when_nothing_is_due_and_another_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_lane, "IDLE", 0.01)
    looks = Looks()
    for _ in range(3):
        looks.lane.add(DueLook("shop", 0.0))
        assert looks.settled()
        thread = looks.lane._thread
        if thread is not None:
            thread.join(PATIENCE)
    assert len(looks.made) == 3
    assert looks.lane._thread is None


def test_a_host_that_is_down_keeps_a_name_a_target_and_no_more() -> None:
    looks = Looks(HostBusy.until("API", "429", 3600.0))
    looks.lane.add(DueLook("shop", 0.0))
    looks.settled()
    for number in range(10_000):
        looks.lane.add(DueLook(f"target-{number % 100}", 0.0, frozenset({f"run-{number}"})))
    assert len(looks.lane._due) == 101
    assert max(len(due.news) for due in looks.lane._due.values()) <= host_lane.NEWS
