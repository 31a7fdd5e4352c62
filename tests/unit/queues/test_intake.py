"""A worker on a shared queue: what it holds, in which order it hands it on, what it acknowledges, and what it gives back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from handler import intake
from handler.intake import Intake
from handler.model.event import Delivery, Job
from handler.model.result import Outcome, Result
from handler.queues.pending import Work
from handler.queues.sqs import Entry, Sqs
from tests.fakes.fifo import Fifo

PATIENCE = 20.0
SHA = "a" * 40
NAMES = (*(f"t{number}" for number in range(60)), "shop", "infra")


@dataclass
class Side:
    """An intake on a queue of AWS' text, with a worker that only keeps what it is handed. Time moves when the test says so."""

    now: float = 0.0
    works: list[Work] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    changed: threading.Condition = field(default_factory=threading.Condition)
    threads: int = 4

    def __post_init__(self) -> None:
        self.dead = Fifo("dead.fifo", lambda: self.now)
        self.fifo = Polled(now=lambda: self.now, dead=self.dead)
        self.sqs = Sqs(self.fifo.url, self.fifo)
        self.intake = self.made()

    def made(self) -> Intake:
        return Intake(self.sqs, NAMES, self.threads, self._take, lambda: tuple(self.busy))

    def _take(self, work: Work) -> None:
        with self.changed:
            self.works.append(work)
            self.changed.notify_all()

    def push(self, target: str, delivery: str, **more: Any) -> str:
        heard = Delivery(delivery, "github", "refs/heads/main", SHA, "ada", "t")
        return self.sqs.put(Job(target, "push", hint=SHA, deliveries=(heard,), **more))

    def ask(self, target: str, **more: Any) -> str:
        return self.sqs.put(Job(target, "replay", actor="ops", **more))

    def poll(self) -> None:
        """Receive once, as the thread does."""
        if most := self.intake._room():
            self.intake._received(self.sqs.receive(most, 0, intake.VISIBLE))

    def end(self, work: Work, outcome: Outcome = Outcome.APPLIED, *, recorded: bool = True, cut: bool = False, code: str = "") -> None:
        self.busy.discard(work.job.target)
        self.intake.ended(work, Result(work.job.target, outcome, recorded=recorded, code=code), cut=cut)

    @property
    def handed(self) -> list[str]:
        return [work.run for work in self.works]


class Polled(Fifo):
    """A FIFO queue whose long polls end at once where a test lets a real thread ask, without turning."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.polled = threading.Semaphore(0)

    def receive_message(self, *arguments: Any, **more: Any) -> dict[str, Any]:
        answer = super().receive_message(*arguments, **more)
        self.polled.release()
        if not answer:
            threading.Event().wait(0.01)
        return answer


@pytest.fixture
def side() -> Iterator[Side]:
    made = Side()
    yield made
    made.intake.stop()


def test_what_is_settled_is_acknowledged_and_what_is_not_comes_again_later(side: Side) -> None:
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


def test_what_is_asked_by_name_is_done_one_after_the_other(side: Side) -> None:
    runs = [side.push("shop", "d1"), side.ask("shop", commit=SHA), side.ask("shop", unpin=True), side.push("shop", "d2")]
    side.poll()
    for number in range(4):
        assert side.handed == runs[: number + 1]
        side.end(side.works[number])
    assert side.fifo.messages == []


def test_behind_one_that_is_not_settled_all_of_its_target_comes_again_in_the_same_order(side: Side) -> None:
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


def test_another_ones_end_acknowledges_nothing(side: Side) -> None:
    side.push("shop", "d1")
    side.poll()
    side.end(Work.of(Job("shop", "tick")))
    side.end(Work.of(Job("infra", "tick")))
    assert len(side.fifo.messages) == 1


# --- what is held
def test_what_is_held_is_hidden_from_others_as_long_as_it_runs(side: Side) -> None:
    side.push("shop", "d1")
    side.ask("shop", unpin=True)
    side.poll()
    for _ in range(5):
        side.now += intake.VISIBLE / 3
        side.intake._back([each for group in side.intake._groups.values() for each in group.held()], intake.VISIBLE)
        assert side.sqs.receive(10, 0, 30) == ()
    side.now += intake.VISIBLE
    assert len(side.sqs.receive(10, 0, 30)) == 2


def test_a_thread_keeps_it_hidden(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "VISIBLE", 0.03)
    side.push("shop", "d1")
    changed = threading.Semaphore(0)
    real = side.fifo.change_message_visibility_batch

    def change(**more: Any) -> dict[str, Any]:
        changed.release()
        return real(**more)

    monkeypatch.setattr(side.fifo, "change_message_visibility_batch", change)
    side.intake.start()
    for _ in range(3):
        assert changed.acquire(timeout=PATIENCE)


def test_one_that_was_hidden_too_short_is_not_run_twice_and_its_newest_receipt_counts(side: Side) -> None:
    side.push("shop", "d1")
    side.ask("shop", unpin=True)
    side.poll()
    side.now += intake.VISIBLE + 1
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


def test_what_waits_for_its_lane_is_parked_so_that_others_get_the_free_thread(side: Side) -> None:
    for number in range(8):
        side.push(f"t{number}", f"d{number}")  # of a cluster that hangs: two may run at once
    side.push("shop", "d8")
    side.busy |= {"t0", "t1"}
    for _ in range(20):
        side.poll()
    assert "shop" in [work.job.target for work in side.works]


def test_what_is_parked_is_bounded_until_it_has_waited_long(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(60):
        side.push(f"t{number}", f"d{number}")
    side.busy |= {"t0", "t1"}
    for _ in range(80):
        side.poll()
    assert len(side.works) == intake.PARKED + 2
    monkeypatch.setattr(intake, "STUCK", 0.0)
    for _ in range(80):
        side.poll()
    assert len(side.works) == 60


# --- what can't be used
@pytest.mark.parametrize("body", ["{odd", '{"v":1,"run":"gone.01","target":"gone","trigger":"push"}'])
def test_what_can_not_be_used_ends_as_a_dead_letter_while_others_go_on(side: Side, body: str, caplog: pytest.LogCaptureFixture) -> None:
    side.sqs.send([Entry(body, "odd", "x")])
    for turn in range(6):
        side.push("shop", f"d{turn}")
        side.poll()
        side.end(side.works[turn])
        side.now += 301.0
    assert [each.body for each in side.dead.messages] == [body]
    assert side.fifo.messages == []
    told = [record.__dict__["fields"] for record in caplog.records if "dead letter" in record.message]
    assert [each["received"] for each in told] == [1, 2, 3, 4, 5]


# --- the end
def test_on_stop_everything_is_visible_to_others_at_once(side: Side) -> None:
    side.push("shop", "d1")
    side.ask("shop", unpin=True)
    side.push("infra", "d2")
    side.poll()
    side.intake.stop()
    assert len(side.sqs.receive(10, 0, 30)) == 3


def test_a_run_cut_short_by_the_stop_is_given_back_by_it_and_not_before(side: Side) -> None:
    side.push("shop", "d1")
    side.poll()
    side.end(side.works[0], Outcome.BUSY, code="stopping", cut=True)
    assert side.sqs.receive(10, 0, 30) == ()
    side.intake.stop()
    assert len(side.sqs.receive(10, 0, 30)) == 1


def test_what_comes_after_the_word_to_stop_is_given_back(side: Side) -> None:
    side.push("shop", "d1")
    messages = side.sqs.receive(10, 0, 30)
    side.intake.halt()
    side.intake._received(messages)
    assert side.works == []
    assert len(side.sqs.receive(10, 0, 30)) == 1


def test_what_is_left_at_the_end_is_somebodys(side: Side) -> None:
    run = side.push("shop", "d1")
    side.poll()
    assert side.intake.left(side.works[0])
    look = Job("infra", "push", hint=SHA, looks=1)
    assert side.intake.left(Work.of(look))
    assert not side.intake.left(Work.of(Job("infra", "tick")))
    side.intake.stop()
    assert [each.group for each in side.fifo.messages] == ["shop", "infra"]
    assert run in side.fifo.messages[0].body


def test_its_threads_take_hand_on_and_end(side: Side) -> None:
    side.intake.start()
    runs = {side.push(f"t{number}", "d1") for number in range(3)}
    with side.changed:
        assert side.changed.wait_for(lambda: len(side.works) == 3, PATIENCE)
    assert set(side.handed) == runs
    side.intake.stop()
    assert not side.intake._receiver.is_alive()
    side.intake._keeper.join(PATIENCE)
    assert not side.intake._keeper.is_alive()


def test_a_queue_in_trouble_is_asked_again(side: Side, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(intake, "FIRST_PAUSE", 0.01)
    side.fifo.trouble = [EndpointConnectionError(endpoint_url="u"), RuntimeError("odd")]
    side.intake.start()
    for _ in range(2):  # both are behind us
        assert side.fifo.polled.acquire(timeout=PATIENCE)
    side.push("shop", "d1")
    with side.changed:
        assert side.changed.wait_for(lambda: side.works, PATIENCE)
    assert {record.message for record in caplog.records} >= {"the queue gives nothing", "taking from the queue has failed"}


def test_what_can_not_be_acknowledged_is_told(side: Side, caplog: pytest.LogCaptureFixture) -> None:
    side.push("shop", "d1")
    side.poll()
    side.fifo.trouble = [EndpointConnectionError(endpoint_url="u")]
    side.end(side.works[0])
    assert "isn't acknowledged" in caplog.text
    side.now += intake.VISIBLE
    side.poll()
    assert len(side.works) == 2  # and runs again, which changes nothing
