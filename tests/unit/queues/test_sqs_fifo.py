"""The model of a FIFO queue keeps what AWS' text says, on which the tests of ordering and redelivery stand."""

from __future__ import annotations

import pytest

from handler.queues.sqs import Received, SqsEntry, SqsQueue
from tests.fakes.sqs_fifo import LONGEST, WINDOW, Fifo


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fifo(clock: Clock) -> Fifo:
    return Fifo(now=clock, dead=Fifo("dead.fifo", clock), most_receives=2)


def send(fifo: Fifo, *bodies: str) -> None:
    """Send messages of which the first letter is the group."""
    SqsQueue(fifo.url, fifo).send([SqsEntry(body, body[0], body) for body in bodies])


def take(fifo: Fifo, most: int = 10, seconds: float = 30) -> list[Received]:
    return list(SqsQueue(fifo.url, fifo).receive(most, 0, seconds))


def bodies(messages: list[Received]) -> list[str]:
    return [message.body for message in messages]


def test_a_group_is_handed_out_in_order_and_is_locked_while_one_of_it_is_in_flight(fifo: Fifo) -> None:
    send(fifo, "a1", "a2", "b1", "a3")
    held = take(fifo, 1)
    assert bodies(held) == ["a1"]
    assert bodies(take(fifo)) == ["b1"]
    SqsQueue(fifo.url, fifo).delete(held)
    assert bodies(take(fifo)) == ["a2", "a3"]


def test_a_message_not_deleted_comes_again_in_order_under_a_new_receipt(fifo: Fifo, clock: Clock) -> None:
    send(fifo, "a1", "a2")
    (first,) = take(fifo, 1)
    clock.now = 30.0
    again = take(fifo)
    assert bodies(again) == ["a1", "a2"]
    assert (again[0].id, again[0].count) == (first.id, 2)
    SqsQueue(fifo.url, fifo).delete([first])
    assert len(fifo.messages) == 2


def test_an_extended_message_stays_hidden_for_twelve_hours_at_most(fifo: Fifo, clock: Clock) -> None:
    send(fifo, "a1")
    held = take(fifo)
    while clock.now + 1800 <= LONGEST:
        assert take(fifo) == []
        SqsQueue(fifo.url, fifo).postpone(held, 1800)
        clock.now += 1000.0
    assert take(fifo) == []
    SqsQueue(fifo.url, fifo).postpone(held, 1800)  # refused
    clock.now += 1000.0
    assert bodies(take(fifo)) == ["a1"]


def test_a_duplicate_is_dropped_within_five_minutes_also_of_a_deleted_one(fifo: Fifo, clock: Clock) -> None:
    send(fifo, "a1")
    SqsQueue(fifo.url, fifo).delete(take(fifo))
    send(fifo, "a1")
    assert fifo.messages == []
    clock.now = WINDOW
    send(fifo, "a1")
    assert bodies(take(fifo)) == ["a1"]


def test_a_message_above_max_receive_count_becomes_a_dead_letter_and_unlocks_its_group(fifo: Fifo, clock: Clock) -> None:
    send(fifo, "a1", "a2")
    for _ in range(2):
        assert bodies(take(fifo, 1)) == ["a1"]
        clock.now += 30.0
    assert bodies(take(fifo, 1)) == ["a2"]
    assert fifo.dead
    assert [each.body for each in fifo.dead.messages] == ["a1"]
