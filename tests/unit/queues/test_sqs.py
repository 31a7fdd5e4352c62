"""SQS' answers in our words, each with its way out; requests in parallel, bounded in time; what a worker may do with what it holds."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import (
    BotoCoreError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from handler.config.settings import QueueSettings, Settings, SqsSettings
from handler.model.errors import ConfigInvalid
from handler.model.event import Delivery, Job
from handler.queues import message, sqs, sqs_client
from handler.queues.sqs import Received, SqsQueue, queue_url
from handler.queues.sqs_client import QueueUnavailable
from infra.moto import Moto
from tests.fakes.sqs_fifo import Fifo, refused
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

URL = "https://sqs.eu-central-1.amazonaws.com/123456789012/anneal.fifo"
JOB = Job("shop", "replay", actor="ops")


def trouble(sqs: SqsQueue, do: Callable[[SqsQueue], Any] = lambda sqs: sqs.put(JOB)) -> QueueUnavailable:
    with pytest.raises(QueueUnavailable) as raised:
        do(sqs)
    return raised.value


def text(error: QueueUnavailable) -> str:
    assert error.status == 503
    return str(error)


# --- errors
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (refused("AWS.SimpleQueueService.NonExistentQueue"), "queue anneal.fifo: doesn't exist; create it, or mend ANNEAL_QUEUE_URL"),
        (refused("AccessDenied"), "queue anneal.fifo: access denied; allow our identity sqs:SendMessage on it"),
        (refused("InvalidClientTokenId"), "queue anneal.fifo: the credentials are unknown; give the process valid AWS credentials"),
        (refused("ExpiredToken"), "queue anneal.fifo: the credentials have expired"),
        (refused("ThrottlingException"), "queue anneal.fifo: throttled"),
        (refused("Odd"), "queue anneal.fifo: answers Odd; try again"),
        (refused("Odd: no such key CANARY"), "queue anneal.fifo: answers an unknown code; try again"),
        (NoCredentialsError(), "queue anneal.fifo: no AWS credentials were found; give the process a role, or AWS_ACCESS_KEY_ID"),
        (CredentialRetrievalError(provider="p", error_msg="e"), "queue anneal.fifo: AWS credentials can't be fetched"),
        (ConnectTimeoutError(endpoint_url=URL), "queue anneal.fifo: isn't reached in time"),
        (ReadTimeoutError(endpoint_url=URL), "queue anneal.fifo: doesn't answer in time"),
        (EndpointConnectionError(endpoint_url=URL), "queue anneal.fifo: isn't reached"),
        (BotoCoreError(), "queue anneal.fifo: can't be used now (BotoCoreError)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_sqs_error_names_the_queue_and_the_fix_and_never_has_awss_text(error: Exception, told: str) -> None:
    fifo = Fifo(trouble=[error])
    raised = trouble(SqsQueue(fifo.url, fifo))
    assert text(raised).startswith(told)
    assert not hasattr(raised, "__notes__")
    assert "123456789012" not in text(raised)  # the account


def test_the_right_that_is_missing_is_that_of_the_call() -> None:
    fifo = Fifo(trouble=[refused("AccessDenied")])
    assert "sqs:ReceiveMessage" in text(trouble(SqsQueue(fifo.url, fifo), lambda sqs: sqs.receive(1, 0, 30)))


def test_missing_credentials_are_told_by_the_real_client(aws: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    assert "no AWS credentials were found" in text(trouble(SqsQueue(f"{aws.url}/123456789012/anneal.fifo")))


def test_a_profile_that_does_not_exist_is_told(aws: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    assert "AWS_PROFILE" in text(trouble(SqsQueue(f"{aws.url}/123456789012/anneal.fifo")))


def test_a_refused_connection_is_told_by_the_real_client(aws: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:  # held, so that no other process listens there
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert "isn't reached" in text(trouble(SqsQueue(URL)))


def test_the_region_is_that_of_the_url(aws: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    def region(url: str) -> str:
        found: str = sqs_client.client(url).meta.region_name
        return found

    assert region("https://sqs.ap-southeast-2.amazonaws.com/1/a.fifo") == "ap-southeast-2"
    assert region("https://us-west-2.queue.amazonaws.com/1/a.fifo") == "us-west-2"
    assert region(f"{aws.url}/1/a.fifo") == "eu-central-1"  # the environment's


# --- in bounded time
class Silent(Fifo):
    """A queue that answers when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()
        self.asked = threading.Semaphore(0)

    def send_message_batch(self, *arguments: Any, **more: Any) -> dict[str, Any]:
        self.asked.release()
        assert self.answers.wait(PATIENCE)
        return super().send_message_batch(*arguments, **more)


def test_a_silent_queue_blocks_no_other_request_and_what_was_given_up_is_not_sent_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqs, "PATIENCE", 0.2)
    silent = Silent()
    queue = SqsQueue(silent.url, silent)
    try:
        raised = trouble(queue, lambda queue: queue.put_all([Job(f"t{number}", "push") for number in range(1000)]))
        assert "hasn't taken all of 1000 messages" in text(raised)
        monkeypatch.setattr(sqs, "PATIENCE", PATIENCE)
    finally:
        silent.answers.set()
    queue.put(JOB)  # waits behind what was under way
    assert len(silent.calls) <= sqs.AT_ONCE + 1


def test_requests_go_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqs, "PATIENCE", PATIENCE)
    silent = Silent()
    queue = SqsQueue(silent.url, silent)
    sender = threading.Thread(target=lambda: queue.put_all([Job(f"t{number}", "push") for number in range(40)]))
    sender.start()
    for _ in range(4):
        assert silent.asked.acquire(timeout=PATIENCE)  # all four are on the wire before one is answered
    silent.answers.set()
    sender.join(PATIENCE)
    assert len(silent.messages) == 40


def test_the_client_waits_as_long_as_a_git_host_allows() -> None:
    assert sqs_client.CONNECT + sqs_client.READ < sqs.PATIENCE < 10


def test_a_part_that_is_refused_is_told() -> None:
    class Partly(Fifo):
        def send_message_batch(self, *arguments: Any, **more: Any) -> dict[str, Any]:
            answer = super().send_message_batch(*arguments, **more)
            return {"Successful": answer["Successful"][1:], "Failed": [{"Id": "0", "Code": "InternalError", "Message": "m"}]}

    partly = Partly()
    assert "1 of the messages: answers InternalError" in text(trouble(SqsQueue(partly.url, partly)))


# --- once and in order
def test_a_delivery_that_comes_twice_is_one_message_and_told_one_run() -> None:
    def pushed(target: str, delivery: str = "d1") -> Job:
        return Job(target, "push", deliveries=(Delivery(delivery, "github", "refs/heads/main", "", "ada", ""),))

    fifo = Fifo()
    queue = SqsQueue(fifo.url, fifo)
    assert queue.put(pushed("shop")) == queue.put(pushed("shop"))
    assert queue.put(pushed("shop", "d2")) != queue.put(pushed("infra"))
    assert len(fifo.messages) == 3


def test_a_received_message_can_be_extended_given_back_and_acknowledged() -> None:
    now = [0.0]
    fifo = Fifo(now=lambda: now[0])
    queue = SqsQueue(fifo.url, fifo)
    queue.put_all([Job("shop", "replay"), Job("shop", "replay")])
    first, second = queue.receive(10, 0, 30)
    assert queue.receive(10, 0, 30) == ()
    now[0] = 29.0
    queue.postpone([first, second], 30)
    now[0] = 58.0
    assert queue.receive(10, 0, 30) == ()
    queue.delete([first])
    queue.postpone([second], 0)
    (again,) = queue.receive(10, 0, 30)
    assert (again.body, again.count, again.group) == (second.body, 2, "shop")


@pytest.mark.parametrize(("times", "left"), [(1, 0), (2, 1)], ids=["once", "twice"])
def test_an_internal_error_of_sqs_is_retried_once(caplog: pytest.LogCaptureFixture, times: int, left: int) -> None:
    class Moody(Fifo):
        moods = times

        def delete_message_batch(self, QueueUrl: str, Entries: list[Any]) -> Any:  # noqa: N803 - AWS' names
            if not self.moods:
                return super().delete_message_batch(QueueUrl, Entries)
            self.moods -= 1
            row = {"Id": Entries[-1]["Id"], "SenderFault": False, "Code": "InternalError"}
            return super().delete_message_batch(QueueUrl, Entries[:-1]) | {"Failed": [row]}

    fifo = Moody()
    queue = SqsQueue(fifo.url, fifo)
    queue.put_all([JOB, replace(JOB, target="infra")])
    caplog.set_level("INFO")
    queue.delete(queue.receive(10, 0, 30))
    assert len(fifo.messages) == left
    assert [record.message for record in caplog.records] == ["the queue hasn't done that; the message comes again"] * left


def test_a_message_with_an_expired_receipt_is_left_to_its_holder(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    fifo = Fifo(now=lambda: now[0])
    queue = SqsQueue(fifo.url, fifo)
    queue.put(JOB)
    (late,) = queue.receive(1, 0, 30)
    now[0] = 31.0
    (newer,) = queue.receive(1, 0, 30)
    caplog.set_level("INFO")
    queue.delete([late])
    queue.postpone([late], 30)
    assert [record.message for record in caplog.records] == ["a message wasn't ours any more"] * 2
    queue.delete([newer])
    assert fifo.messages == []


def test_the_real_client_keeps_gives_back_and_acknowledges(aws: Moto) -> None:
    url = boto3.client("sqs", **aws.client).create_queue(QueueName="anneal.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    queue = SqsQueue(url)
    run = queue.put(JOB)
    (held,) = queue.receive(10, 0, 30)
    assert (message.decode(held.body).run, held.count, held.group) == (run, 1, "shop")
    queue.postpone([held], 0)
    (again,) = queue.receive(10, 0, 30)
    assert again.count == 2
    queue.delete([again])
    assert queue.receive(10, 0, 30) == ()


def test_a_record_of_a_lambda_event_is_read_alike() -> None:
    attributes = {"ApproximateReceiveCount": "3", "MessageGroupId": "shop", "SentTimestamp": "1500"}
    record = {"messageId": "m", "receiptHandle": "r", "body": "b", "attributes": attributes, "eventSource": "aws:sqs"}
    assert sqs.Received.of(record) == sqs.Received("m", "b", "r", 3, "shop", 1.5)


# --- which queue
def test_the_queue_url_of_the_environment_stands_above_the_settings() -> None:
    settings = Settings(targets=(), queue=QueueSettings(SqsSettings(URL)))
    assert queue_url(settings, {}) == URL
    assert queue_url(settings, {"ANNEAL_QUEUE_URL": f"{URL[:-5]}-two.fifo"}) == f"{URL[:-5]}-two.fifo"
    assert queue_url(Settings(targets=()), {"ANNEAL_QUEUE_URL": ""}) == ""
    with pytest.raises(ConfigInvalid, match=r"ANNEAL_QUEUE_URL.*FIFO"):
        queue_url(settings, {"ANNEAL_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/123456789012/plain"})


PLAN = Job("shop~12", "pull-request", comments=("6",), actor="ada")


class Sent(Fifo):
    """A queue that keeps the rows as they were sent."""

    rows: list[dict[str, str]]

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, object]:  # noqa: N803 - AWS' names
        self.rows = Entries
        return super().send_message_batch(QueueUrl, Entries)


def test_plans_share_groups_by_names_that_aws_takes() -> None:
    fifo = Sent()
    runs = SqsQueue(fifo.url, fifo).put_all(
        (PLAN, Job("shop~13", "pull-request"), Job("shop", "push"), Job("a" * 56 + "~999999999", "pull-request"))
    )
    first, second, shop, long = (row["MessageGroupId"] for row in fifo.rows)
    assert (shop, {first, second, long} <= {"plans~0", "plans~1"}) == ("shop", True)
    for row in fifo.rows:
        for part in ("MessageGroupId", "MessageDeduplicationId"):
            assert re.fullmatch(r"[A-Za-z0-9!-/:-@\[-`{-~]{1,128}", row[part]), "alphanumeric characters and punctuation, says AWS"
    assert len({row["MessageDeduplicationId"] for row in fifo.rows}) == 4
    assert [message.decode(row["MessageBody"]).runs for row in fifo.rows] == [(run,) for run in runs]


def test_however_many_plans_there_are_they_keep_a_few_workers_and_no_target_waits_for_them() -> None:
    fifo = Fifo()
    queue = SqsQueue(fifo.url, fifo)
    plans = [Job(f"shop~{number}", "pull-request") for number in range(1, 30)]
    tried = [Job(f"cart~{number}", "pull-request", looks=1, moment=1.0) for number in range(1, 9)]
    queue.put_all((PLAN, *plans, *tried, Job("shop", "push")))
    held = list[Received]()
    while found := queue.receive(1, 0, 60):
        held += found
    assert sorted(each.group for each in held) == ["plans~0", "plans~1", "plans~2", "shop"]
    assert queue.delete(held) == ()
    assert len(queue.receive(10, 0, 60)) == 10, "the next ones come when those have ended"


def test_two_wishes_for_a_plan_are_two_messages_and_one_that_is_sent_again_is_one() -> None:
    fifo = Fifo()
    queue = SqsQueue(fifo.url, fifo)
    assert queue.put(PLAN) != queue.put(PLAN)
    assert len(fifo.messages) == 2
    known = Job("shop~12", "pull-request", run="shop~12.0123456789ab")
    assert queue.put(known) == queue.put(known) == known.run
    assert len(fifo.messages) == 3
