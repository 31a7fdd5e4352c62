"""Dead letters are found by the redrive policy, counted, looked at without being hidden, and asked for again without one being lost."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

import boto3
import pytest

from handler.model.event import Job
from handler.queues.dead_letters import DeadLetterCount, DeadLetters
from handler.queues.pending import Work
from handler.queues.sqs import SqsQueue
from handler.queues.sqs_client import QueueInvalid, QueueUnavailable
from infra.moto import Moto
from tests.fakes.sqs_fifo import Fifo, refused
from tests.unit.queues.dead_letter_queues import Queues, asks

pytestmark = pytest.mark.slow


def everything(_work: Work) -> bool:
    return True


@pytest.fixture
def queues() -> Queues:
    return Queues()


def test_dead_letters_are_listed_and_stay_visible(queues: Queues) -> None:
    queues.die(asks("shop"), asks("infra"))
    queues.die("{odd", group="shop-dev")
    found = queues.letters.look()
    assert [letter.work.job.target if letter.work else letter.received.group for letter in found.found] == ["shop", "infra", "shop-dev"]
    assert found.found[2].trouble
    assert found.waiting == 3
    assert not any(queues.dead.locked(group) for group in ("shop", "infra", "shop-dev"))


def test_ten_dead_letters_of_a_target_are_listed_and_the_rest_counted(queues: Queues) -> None:
    queues.die(*(asks("shop", number) for number in range(13)))
    found = queues.letters.look()
    assert (len(found.found), found.waiting) == (10, 13)


def test_redrive_takes_all_dead_letters_beyond_one_page(queues: Queues) -> None:
    bodies = [asks("shop", number) for number in range(13)]
    queues.die(*bodies)
    done = queues.letters.redrive(everything)
    assert [len(done.again), len(done.kept), len(queues.dead.messages)] == [13, 0, 0]
    assert [each.body for each in queues.main.messages] == bodies
    assert {each.group for each in queues.main.messages} == {"shop"}


def test_redrive_takes_only_the_selected_dead_letters(queues: Queues) -> None:
    queues.die(asks("shop"), asks("infra"))
    done = queues.letters.redrive(lambda work: work.job.target == "infra")
    assert [letter.work.job.target for letter in done.kept if letter.work] == ["shop"]
    assert [each.group for each in queues.main.messages] == ["infra"]
    assert [each.group for each in queues.dead.messages] == ["shop"]
    assert not queues.dead.locked("shop")


def test_an_unreadable_dead_letter_is_kept_unless_dropped(queues: Queues) -> None:
    queues.die("{odd", group="shop")
    kept = queues.letters.redrive(everything)
    assert [letter.received.body for letter in kept.kept] == ["{odd"]
    gone = queues.letters.redrive(everything, drop_unreadable=True)
    assert [letter.received.body for letter in gone.dropped] == ["{odd"]
    assert queues.dead.messages == queues.main.messages == []


def test_a_dead_letter_that_cant_be_deleted_is_kept_and_reported(queues: Queues) -> None:
    queues.die("{odd", "{odder", group="shop")

    def refused(QueueUrl: str, Entries: list[dict[str, str]]) -> object:  # noqa: N803 - AWS' names
        first, *rest = Entries
        real(QueueUrl=QueueUrl, Entries=rest)
        return {"Failed": [{"Id": first["Id"], "Code": "InternalError", "SenderFault": True}]}

    real: Callable[..., object] = queues.main.delete_message_batch
    queues.main.delete_message_batch = refused  # type: ignore[method-assign,assignment]  # it takes what it gets
    done = queues.letters.redrive(everything, drop_unreadable=True)
    assert [[letter.received.body for letter in each] for each in (done.dropped, done.kept)] == [["{odder"], ["{odd"]]
    assert [each.body for each in queues.dead.messages] == ["{odd"]
    assert not queues.dead.locked("shop")


def test_a_redrive_killed_between_send_and_delete_loses_and_doubles_no_dead_letter(queues: Queues) -> None:
    queues.die(asks("shop"))
    real: Callable[..., object] = queues.main.delete_message_batch

    def killed(**_: object) -> object:
        raise refused("InternalError")

    queues.main.delete_message_batch = killed  # type: ignore[method-assign,assignment]  # the moment of death
    with pytest.raises(QueueUnavailable):
        queues.letters.redrive(everything)
    assert (len(queues.main.messages), len(queues.dead.messages)) == (1, 1)
    queues.main.delete_message_batch = real  # type: ignore[method-assign,assignment]  # the next process
    queues.letters.redrive(everything)
    assert (len(queues.main.messages), len(queues.dead.messages)) == (1, 0)


def test_a_dead_letter_that_dies_again_can_be_redriven_within_five_minutes(queues: Queues) -> None:
    queues.die(asks("shop"))
    assert len(queues.letters.redrive(everything).again) == 1
    queues.sqs.receive(10, 0, 1)
    queues.now += 2.0
    queues.sqs.receive(10, 0, 1)
    assert len(queues.dead.messages) == 1
    assert len(queues.letters.redrive(everything).again) == 1
    assert len(queues.main.messages) == 1


def test_a_queue_without_a_redrive_policy_is_told() -> None:
    fifo = Fifo()
    with pytest.raises(QueueInvalid, match=r"queue anneal.fifo: has no redrive policy"):
        DeadLetters(SqsQueue(fifo.url, fifo))


def test_the_real_client_lists_and_asks_again(aws: Moto) -> None:
    client = boto3.client("sqs", **aws.client)
    dead = client.create_queue(QueueName="anneal-dead.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    url = client.create_queue(QueueName="anneal.fifo", Attributes={"FifoQueue": "true", "RedrivePolicy": policy})["QueueUrl"]
    queue = SqsQueue(url)
    queue.put(Job("shop", "replay", actor="ops"))
    for _ in range(2):
        queue.receive(10, 0, 0)
    letters = DeadLetters(queue)
    assert letters.name == "anneal-dead.fifo"
    (letter,) = letters.look().found
    assert letter.work
    assert letter.work.job.actor == "ops"
    assert len(letters.redrive(everything).again) == 1
    assert letters.look().found == ()
    assert len(queue.receive(10, 0, 30)) == 1


def test_dead_letters_are_counted() -> None:
    queues, found = Queues(), list[tuple[str, int]]()
    count = DeadLetterCount(queues.sqs, lambda name, number: found.append((name, number)))
    count.count()
    queues.die(asks("shop"), asks("site"))
    count.count()
    assert found == [("anneal-dead.fifo", 0), ("anneal-dead.fifo", 2)]


def test_without_a_dead_letter_queue_that_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    queue = Fifo(now=lambda: 0.0)
    count = DeadLetterCount(SqsQueue(queue.url, queue), lambda *_: pytest.fail("nothing was counted"))
    with caplog.at_level(logging.WARNING):
        count.count()
        count.count()
    assert [record.message for record in caplog.records] == ["dead letters aren't counted"]
