"""Amazon SQS, a FIFO queue: one group a target, so that a target is serial and targets are parallel; few for all plans of pull requests.

It is no lock: the Lease stays.

A delivery that comes twice within five minutes is one message. What isn't deleted in time comes again, in its order.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass
from typing import Any

from handler.config.settings import Settings
from handler.config.value_formats import FORMS
from handler.model.errors import ConfigInvalid
from handler.model.event import Job
from handler.queues import message, sqs_client
from handler.queues.pending import Work
from handler.queues.sqs_client import QueueUnavailable

_LOG = logging.getLogger("anneal.queue")
BATCH = 10
"""Messages of one request: SQS' own bound."""
AT_ONCE = 8
"""Requests at once: a push that 1,000 targets match is a hundred of them."""
PATIENCE = 8.0
"""Seconds that putting may take altogether: git hosts wait ten for their answer."""
URL = "ANNEAL_QUEUE_URL"


def queue_url(settings: Settings, environ: Mapping[str, str]) -> str:
    """Return the queue's URL, from the environment before the settings; empty: there is none. Raises ConfigInvalid."""
    given = environ.get(URL, "")
    if given and (complaint := FORMS["queueUrl"].complaint(given)):
        raise ConfigInvalid.of(URL, complaint[0], fix=complaint[1])
    return given or (settings.queue.sqs.url if settings.queue.sqs else "")


@dataclass(frozen=True, slots=True)
class Received:
    """A message that is ours for a while, under this `receipt`. `count`: how often it was received; `sent`: epoch seconds."""

    id: str
    body: str
    receipt: str
    count: int = 1
    group: str = ""
    sent: float = 0.0

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Received:
        """Read a row of ReceiveMessage, or a record of a Lambda event, which spells the same in lower case."""
        known = {key[:1].lower() + key[1:]: value for key, value in row.items()}
        attributes = known.get("attributes") or {}
        count, sent = int(attributes.get("ApproximateReceiveCount", 1)), int(attributes.get("SentTimestamp", 0)) / 1000
        return cls(known["messageId"], known["body"], known["receiptHandle"], count, attributes.get("MessageGroupId", ""), sent)


@dataclass(frozen=True, slots=True)
class SqsEntry:
    """A message to be sent."""

    body: str
    group: str
    deduplication: str


class SqsQueue:
    """A `Queue` whose jobs wait at AWS. Safe to share between threads.

    `client`: a botocore client for SQS; None: one is made at first use. `longest_wait`: seconds that `receive` may wait.
    """

    def __init__(self, url: str, client: Any = None, *, longest_wait: float = 0.0) -> None:
        self.url = url
        self._client = client
        self._longest_wait = longest_wait
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def put(self, job: Job) -> str:
        """Take a job; return the id of its run. Raises QueueUnavailable."""
        return self.put_all((job,))[0]

    def put_all(self, jobs: Sequence[Job]) -> tuple[str, ...]:
        """Take jobs; return the ids of their runs. Either all are taken or QueueUnavailable is raised: then some of them may be, too."""
        runs = [message.identified(job) for job in jobs]
        self.send([_entry(job, run) for job, run in zip(jobs, runs, strict=True)])
        return tuple(runs)

    def send(self, entries: Sequence[SqsEntry]) -> None:
        """Send messages, a few requests at once; those of one group within one request keep their order. Raises QueueUnavailable."""
        futures = [self._threads().submit(self._send, entries[start : start + BATCH]) for start in range(0, len(entries), BATCH)]
        until = time.monotonic() + PATIENCE
        try:
            for future in futures:
                future.result(max(until - time.monotonic(), 0.0))
        except TooLate:
            seen = f"hasn't taken all of {len(entries)} messages in {PATIENCE:g} s"
            raise QueueUnavailable.of(sqs_client.named(self.url), seen, fix="try again") from None
        finally:
            for future in futures:
                future.cancel()

    def _send(self, entries: Sequence[SqsEntry]) -> None:
        rows = [
            {"Id": str(number), "MessageBody": each.body, "MessageGroupId": each.group, "MessageDeduplicationId": each.deduplication}
            for number, each in enumerate(entries)
        ]
        if left := self._call("send_message_batch", Entries=rows).get("Failed"):
            raise sqs_client.failed(self.url, "send_message_batch", left)

    def receive(self, most: int, wait: float, visible: float) -> tuple[Received, ...]:
        """Return at most `most` messages (ten) that no other worker has now, waiting `wait` seconds for one. Raises QueueUnavailable.

        What isn't deleted or postponed within `visible` seconds another worker gets.
        """
        answer = self._call(
            "receive_message",
            MaxNumberOfMessages=min(most, BATCH),
            WaitTimeSeconds=int(wait),
            VisibilityTimeout=int(visible),
            ReceiveRequestAttemptId=uuid.uuid4().hex,  # a second try of this request gets what the first one's lost answer held
            MessageSystemAttributeNames=["All"],
        )
        return tuple(Received.of(row) for row in answer.get("Messages", ()))

    def delete(self, messages: Sequence[Received]) -> tuple[Received, ...]:
        """Acknowledge messages; return those that couldn't be, as others may have them now. Raises QueueUnavailable."""
        return self._each("delete_message_batch", messages, {})

    def postpone(self, messages: Sequence[Received], seconds: float) -> None:
        """Let messages come again after so many seconds from now, not earlier; 0: at once. Raises QueueUnavailable."""
        self._each("change_message_visibility_batch", messages, {"VisibilityTimeout": int(seconds)})

    def _each(self, method: str, messages: Sequence[Received], more: Mapping[str, Any]) -> tuple[Received, ...]:
        """Do one thing with messages; return those it failed with. What failed for a reason of the queue's own is tried once more."""
        undone = []
        for start in range(0, len(messages), BATCH):
            again = []
            for each, left in self._failed(method, messages[start : start + BATCH], more):
                if left.get("SenderFault") is False:
                    again.append(each)
                    continue
                _LOG.info("a message wasn't ours any more", extra={"fields": {"did": method, "message": each.id, "seen": left.get("Code")}})
                undone.append(each)
            for each, left in self._failed(method, again, more) if again else ():
                fields = {"did": method, "message": each.id, "seen": left.get("Code")}
                _LOG.warning("the queue hasn't done that; the message comes again", extra={"fields": fields})
                undone.append(each)
        return tuple(undone)

    def _failed(self, method: str, messages: Sequence[Received], more: Mapping[str, Any]) -> list[tuple[Received, Mapping[str, Any]]]:
        rows = [{"Id": str(number), "ReceiptHandle": each.receipt, **more} for number, each in enumerate(messages)]
        return [(messages[int(left["Id"])], left) for left in self._call(method, Entries=rows).get("Failed", ())]

    def attributes(self, *names: str) -> dict[str, str]:
        """Return what is set of the queue. Raises QueueUnavailable."""
        found: dict[str, str] = self._call("get_queue_attributes", AttributeNames=list(names)).get("Attributes", {})
        return found

    def address(self, name: str, account: str) -> str:
        """Return the URL of another queue by its name. Raises QueueUnavailable."""
        found: str = sqs_client.call(self._made(), self.url, "get_queue_url", QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]
        return found

    def beside(self, url: str) -> SqsQueue:
        """Return another queue, by the same client."""
        return SqsQueue(url, self._made(), longest_wait=self._longest_wait)

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        return sqs_client.call(self._made(), self.url, method, QueueUrl=self.url, **arguments)

    def _made(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = sqs_client.client(self.url, self._longest_wait)
            return self._client

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="sqs")
            return self._pool


def _entry(job: Job, run: str) -> SqsEntry:
    return SqsEntry(message.encode(Work(job, (run,))), message.group(job), message.deduplication(job, run))
