"""A worker on a shared queue: in which order it hands messages on, for how much it has room, what it acknowledges, keeps and gives back."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from handler.model.backoff import Backoff
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.queues.pending import Work
from handler.queues.sqs import SqsEntry
from handler.worker import sqs_consumer
from handler.worker.worker import Worker
from tests.fakes.signed_webhooks import door_settings
from tests.fakes.sqs_side import SHA, Side
from tests.fakes.worker_parts import parts_of
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


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


# --- room
def test_only_as_much_is_taken_as_there_are_threads(side: Side) -> None:
    for number in range(10):
        side.push(f"t{number}", f"d{number}")
    side.busy.add("infra")  # by the schedule
    side.poll()
    assert len(side.works) == 3
    side.busy |= {work.job.target for work in side.works}
    side.poll()
    assert len(side.works) == 3
    side.end(side.works[0])
    side.poll()
    assert len(side.works) == 4


def test_a_message_of_a_full_bulkhead_is_parked_so_that_others_get_the_thread(side: Side) -> None:
    for number in range(8):
        side.push(f"t{number}", f"d{number}")  # of a cluster that hangs: two may run at once
    side.push("shop", "d8")
    side.busy |= {"t0", "t1"}
    for _ in range(20):
        side.poll()
    assert "shop" in [work.job.target for work in side.works]


def test_parked_messages_are_bounded_until_they_have_waited_long(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(60):
        side.push(f"t{number}", f"d{number}")
    side.busy |= {"t0", "t1"}
    for _ in range(80):
        side.poll()
    assert len(side.works) == sqs_consumer.PARKED + 2
    monkeypatch.setattr(sqs_consumer, "STUCK", 0.0)
    for _ in range(80):
        side.poll()
    assert len(side.works) == 60


# --- what can't be used
@pytest.mark.parametrize("body", ["{odd", '{"v":1,"run":"gone.01","target":"gone","trigger":"push"}'])
def test_an_unusable_message_ends_as_a_dead_letter_while_others_go_on(side: Side, body: str, caplog: pytest.LogCaptureFixture) -> None:
    side.sqs.send([SqsEntry(body, "odd", "x")])
    for turn in range(6):
        side.push("shop", f"d{turn}")
        side.poll()
        side.end(side.works[turn])
        side.now += 301.0
    assert [each.body for each in side.dead.messages] == [body]
    assert side.fifo.messages == []
    told = [record.__dict__["fields"] for record in caplog.records if "dead letter" in record.message]
    assert [each["received"] for each in told] == [1, 2, 3, 4, 5]


def test_an_unreadable_message_blocks_its_group_only_until_it_is_a_dead_letter(side: Side) -> None:
    for number in range(10):
        side.sqs.send([SqsEntry("{odd", "shop", f"odd{number}")])
    side.push("shop", "d1")
    for _ in range(60):
        side.poll()
    assert [work.job.target for work in side.works] == ["shop"], "at the time it was sent"
    side.end(side.works[0])
    for _ in range(60):
        side.poll()
    assert len(side.dead.messages) == 10


# --- the end
def test_on_stop_everything_is_visible_to_others_at_once(side: Side) -> None:
    side.push("shop", "d1")
    side.ask("shop", unpin=True)
    side.push("infra", "d2")
    side.poll()
    side.consumer.stop()
    assert len(side.sqs.receive(10, 0, 30)) == 3


def test_a_run_cut_short_by_the_stop_is_given_back_by_it_and_not_before(side: Side) -> None:
    side.push("shop", "d1")
    side.poll()
    side.end(side.works[0], Outcome.BUSY, code="stopping", cut=True)
    assert side.sqs.receive(10, 0, 30) == ()
    side.consumer.stop()
    assert len(side.sqs.receive(10, 0, 30)) == 1


def test_a_message_received_after_stop_is_given_back(side: Side) -> None:
    side.push("shop", "d1")
    messages = side.sqs.receive(10, 0, 30)
    side.consumer.halt()
    side.consumer._received(messages)
    assert side.works == []
    assert len(side.sqs.receive(10, 0, 30)) == 1


def test_a_run_left_at_stop_has_a_message_or_is_logged(side: Side) -> None:
    run = side.push("shop", "d1")
    side.poll()
    assert side.consumer.left(side.works[0])
    look = Job("infra", "push", hint=SHA, looks=1)
    assert side.consumer.left(Work.of(look))
    assert not side.consumer.left(Work.of(Job("infra", "tick")))
    side.consumer.stop()
    assert [each.group for each in side.fifo.messages] == ["shop", "infra"]
    assert run in side.fifo.messages[0].body


def test_consumer_threads_receive_hand_on_and_stop(side: Side) -> None:
    side.consumer.start()
    runs = {side.push(f"t{number}", "d1") for number in range(3)}
    with side.changed:
        assert side.changed.wait_for(lambda: len(side.works) == 3, PATIENCE)
    assert set(side.handed) == runs
    side.consumer.stop()
    side.consumer._receiver.join(PATIENCE)
    assert not side.consumer._receiver.is_alive()
    side.consumer._keeper.join(PATIENCE)
    assert not side.consumer._keeper.is_alive()


def test_a_queue_in_trouble_is_asked_again(side: Side, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(sqs_consumer, "PAUSES", Backoff(0.01, 30.0))
    side.fifo.trouble = [EndpointConnectionError(endpoint_url="u"), RuntimeError("odd")]
    side.consumer.start()
    for _ in range(2):  # both are behind us
        assert side.fifo.polled.acquire(timeout=PATIENCE)
    side.push("shop", "d1")
    with side.changed:
        assert side.changed.wait_for(lambda: side.works, PATIENCE)
    assert {record.message for record in caplog.records} >= {"the queue gives nothing", "taking from the queue has failed"}


def test_a_message_that_cant_be_acknowledged_is_logged(side: Side, caplog: pytest.LogCaptureFixture) -> None:
    side.push("shop", "d1")
    side.poll()
    side.fifo.trouble = [EndpointConnectionError(endpoint_url="u")]
    side.end(side.works[0])
    assert "isn't acknowledged" in caplog.text
    side.now += sqs_consumer.VISIBLE
    side.poll()
    assert len(side.works) == 2  # and runs again, which changes nothing


# --- what goes wrong behind a run
@pytest.mark.parametrize(("recorded", "left"), [(True, 0), (False, 1)])
def test_an_exception_after_a_run_doesnt_keep_its_message(side: Side, monkeypatch: pytest.MonkeyPatch, recorded: bool, left: int) -> None:
    def run(job: Job, _stop: threading.Event, _meanwhile: object = None) -> Result:
        return Result(job.target, Outcome.APPLIED if recorded else Outcome.FAILED, recorded=recorded)

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    worker = Worker(door_settings(), replace(parts_of(run), queue=side.sqs))
    assert worker._consumer
    side.push("infra", "d1")
    worker._consumer._received(side.sqs.receive(1, 0, sqs_consumer.VISIBLE))
    work = worker._queue.take()
    assert work
    monkeypatch.setattr(worker._bulkheads, "ended", full)
    with pytest.raises(OSError, match="no space"):
        worker._work(work)
    assert len(side.fifo.messages) == left
    assert worker._consumer._groups == {}


def test_an_exception_after_a_run_with_a_late_push_doesnt_lose_it(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    worker = Worker(door_settings(), parts_of(lambda job, _stop, _meanwhile: Result(job.target, Outcome.LAGGING)))
    monkeypatch.setattr(worker._bulkheads, "ended", full)
    work = Work.of(Job("infra", "push", hint=SHA))
    with pytest.raises(OSError, match="no space"):
        worker._work(work)
    assert [each.run for each in worker._queue.due(float("inf"))] == [work.run]


def test_extending_visibility_goes_on_after_an_exception(
    side: Side, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqs_consumer, "VISIBLE", 0.03)
    looked, postpone = threading.Semaphore(0), side.sqs.postpone

    def odd(messages: object, seconds: float) -> None:
        looked.release()
        raise RuntimeError("odd")

    monkeypatch.setattr(side.sqs, "postpone", odd)
    side.consumer._keeper.start()
    for _ in range(2):
        assert looked.acquire(timeout=PATIENCE)
    monkeypatch.setattr(side.sqs, "postpone", postpone)
    assert "keeping messages has failed" in caplog.text
