"""A worker on a shared queue: in which order it hands messages on, what it acknowledges, and what it keeps from others."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from handler.model.event import Job
from handler.model.result import Outcome
from handler.queues.pending import Work
from handler.worker import sqs_consumer
from tests.fakes.sqs_side import SHA, Side
from tests.patience import PATIENCE


def test_a_settled_message_is_acknowledged_and_another_comes_again_with_back_off(side: Side) -> None:
    side.push("shop", "d1")
    side.push("infra", "d2")
    side.poll()
    shop, infra = side.works
    side.end(shop)
    side.end(infra, Outcome.FAILED, recorded=False)
    assert [each.group for each in side.fifo.messages] == ["infra"]
    side.poll()
    assert len(side.works) == 2
    side.now += 15.0
    side.poll()
    assert side.works[2].runs == infra.runs
    side.end(infra, Outcome.FAILED, recorded=False)
    side.now += 15.0
    side.poll()
    assert len(side.works) == 3  # the second time it takes 30 s
    side.now += 15.0
    side.poll()
    assert len(side.works) == 4


def test_what_is_asked_of_an_instance_is_handed_on_as_its_template_is_known(side: Side) -> None:
    runs = [side.ask("shop.web.main", commit=SHA), side.push("infra.web.main", "d1"), side.push("other.web.main", "d2")]
    side.poll()
    assert side.handed == runs[:2]


def test_pushes_of_one_target_go_together_and_are_acknowledged_together(side: Side) -> None:
    runs = [side.push("shop", f"d{number}") for number in range(4)]
    side.poll()
    assert side.handed == runs
    first, *others = side.works
    merged = first
    for other in others:
        merged = merged.merged(other)
    side.end(merged)
    assert side.fifo.messages == []


def test_pushes_that_one_run_did_not_take_in_are_acknowledged_by_their_own(side: Side) -> None:
    runs = [side.push("shop", "d1"), side.push("shop", "d2")]
    side.poll()
    side.end(side.works[0])
    assert [each.group for each in side.fifo.messages] == ["shop"]
    assert side.handed == runs  # the second isn't handed out twice
    side.end(side.works[1])
    assert side.fifo.messages == []


def test_named_requests_are_run_one_after_the_other(side: Side) -> None:
    runs = [side.push("shop", "d1"), side.ask("shop", commit=SHA), side.ask("shop", unpin=True), side.push("shop", "d2")]
    side.poll()
    for number in range(4):
        assert side.handed == runs[: number + 1]
        side.end(side.works[number])
    assert side.fifo.messages == []


def test_behind_a_message_not_acknowledged_its_group_comes_again_in_order(side: Side) -> None:
    runs = [side.ask("shop", commit=SHA), side.ask("shop", unpin=True), side.push("shop", "d1")]
    side.poll()
    side.end(side.works[0], Outcome.FAILED, recorded=False)
    assert side.handed == runs[:1]
    side.now += 15.0
    for number in range(3):
        side.poll()
        side.end(side.works[number + 1])
    assert side.handed == [runs[0], *runs]
    assert side.fifo.messages == []


def test_a_tick_that_took_a_push_in_acknowledges_it(side: Side) -> None:
    side.push("shop", "d1")
    side.poll()
    side.end(Work.of(Job("shop", "tick")).merged(side.works[0]))
    assert side.fifo.messages == []


def test_the_end_of_another_run_acknowledges_no_message(side: Side) -> None:
    side.push("shop", "d1")
    side.poll()
    side.end(Work.of(Job("shop", "tick")))
    side.end(Work.of(Job("infra", "tick")))
    assert len(side.fifo.messages) == 1


def test_a_plan_that_is_tried_again_waits_in_the_queue_until_its_time(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.queues.message_outcome.time.time", lambda: 1_000_000.0 + side.now)
    side.sqs.put(Job("shop~12", "pull-request", comments=("6",)))
    side.poll()
    side.end(side.works[0], Outcome.PLANNED, recorded=False)
    assert side.fifo.messages == []
    again = Work.of(Job("shop~12", "pull-request", looks=1, moment=1_000_600.0))
    assert side.consumer.left(again)
    for seconds in (0.0, 599.0):
        side.now = seconds
        side.poll()
        assert len(side.works) == 1
    side.now = 601.0
    side.poll()
    assert (len(side.works), side.works[-1].job.looks) == (2, 1)
    side.end(side.works[-1], Outcome.FAILED, recorded=False)
    assert side.fifo.messages == []


# --- what is held
def test_visibility_of_a_message_is_extended_while_it_runs(side: Side) -> None:
    side.push("shop", "d1")
    side.ask("shop", unpin=True)
    side.poll()
    for _ in range(5):
        side.now += sqs_consumer.VISIBLE / 3
        side.consumer._back([each for group in side.consumer._groups.values() for each in group.held()], sqs_consumer.VISIBLE)
        assert side.sqs.receive(10, 0, 30) == ()
    side.now += sqs_consumer.VISIBLE
    assert len(side.sqs.receive(10, 0, 30)) == 2


def test_a_thread_extends_the_visibility(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqs_consumer, "VISIBLE", 0.03)
    side.push("shop", "d1")
    changed = threading.Semaphore(0)
    real = side.fifo.change_message_visibility_batch

    def change(**more: Any) -> dict[str, Any]:
        changed.release()
        return real(**more)

    monkeypatch.setattr(side.fifo, "change_message_visibility_batch", change)
    side.consumer.start()
    for _ in range(3):
        assert changed.acquire(timeout=PATIENCE)


def test_a_message_whose_visibility_expired_is_not_run_twice(side: Side) -> None:
    side.push("shop", "d1")
    side.ask("shop", unpin=True)
    side.poll()
    side.now += sqs_consumer.VISIBLE + 1
    side.poll()
    assert len(side.works) == 1
    side.end(side.works[0])
    side.end(side.works[1])
    assert side.fifo.messages == []
