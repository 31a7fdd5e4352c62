"""A FIFO queue as AWS describes it, in memory and on a clock of the test's own; it answers the client calls that `SqsQueue` makes.

Written from the Amazon SQS Developer Guide ("FIFO queue delivery logic", "Exactly-once processing", "Visibility timeout", "Dead-letter
queues") and API reference, because moto keeps neither the order on redelivery nor the lock of a group:

- a group is handed out in the order in which it was sent, and not at all while one of its messages is in flight;
- what isn't deleted within its visibility time-out is handed out again, in its place, under a new receipt; the old receipt has expired;
- a message with a known deduplication id of the last five minutes is accepted and not delivered, also when the first is deleted already;
- one that was handed out `maxReceiveCount` times goes to the dead-letter queue instead of being handed out once more: its group goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from botocore.exceptions import ClientError

WINDOW = 300.0
"""Seconds in which a deduplication id is known."""
LONGEST = 12 * 3600.0
"""Seconds that a message may be in flight, however often it is extended."""
Answer = dict[str, Any]
REGION, ACCOUNT = "eu-central-1", "123456789012"


@dataclass
class Message:
    """`visible`: when it may be handed out (again); `receipt`: the newest; `since`: when that was handed out."""

    id: str
    body: str
    group: str
    sent: float
    visible: float = 0.0
    receipt: str = ""
    received: int = 0
    since: float = 0.0


@dataclass
class Fifo:
    """One queue. `dead`: its dead-letter queue; `now`: the time in seconds; `trouble`: raised by the next calls, one each."""

    name: str = "anneal.fifo"
    now: Callable[[], float] = lambda: 0.0
    dead: Fifo | None = None
    most_receives: int = 5
    visibility: float = 30.0
    messages: list[Message] = field(default_factory=list)
    trouble: list[Exception] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    _known: dict[str, tuple[float, str]] = field(default_factory=dict)
    _numbers: Any = field(default_factory=count)

    @property
    def url(self) -> str:
        return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{self.name}"

    def locked(self, group: str) -> bool:
        """Whether one of a group's messages is in flight."""
        return any(each.group == group and each.visible > self.now() for each in self.messages)

    # --- the client's calls
    def send_message_batch(self, QueueUrl: str, Entries: list[Answer]) -> Answer:  # noqa: N803 - AWS' names
        queue = self._begin("send", QueueUrl)
        assert len(Entries) <= 10
        return {"Successful": [{"Id": each["Id"], "MessageId": queue._sent(each)} for each in Entries]}

    def _sent(self, entry: Answer) -> str:
        known = self._known.get(entry["MessageDeduplicationId"])
        if known and self.now() - known[0] < WINDOW:
            return known[1]
        message = Message(f"{self.name}-{next(self._numbers)}", entry["MessageBody"], entry["MessageGroupId"], self.now())
        self._known[entry["MessageDeduplicationId"]] = self.now(), message.id
        self.messages.append(message)
        return message.id

    def receive_message(self, QueueUrl: str, MaxNumberOfMessages: int = 1, VisibilityTimeout: int | None = None, **_: Any) -> Answer:  # noqa: N803 - AWS' names
        queue = self._begin("receive", QueueUrl)
        timeout = queue.visibility if VisibilityTimeout is None else VisibilityTimeout
        locked = {each.group for each in queue.messages if queue.locked(each.group)}
        found: list[Message] = []
        for message in list(queue.messages):
            if message.group in locked or len(found) == MaxNumberOfMessages:
                continue
            if queue.dead and message.received >= queue.most_receives:
                queue.messages.remove(message)
                queue.dead.messages.append(Message(message.id, message.body, message.group, message.sent))
                continue
            found.append(queue._handed(message, timeout))
        return {"Messages": [_row(message) for message in found]} if found else {}

    def _handed(self, message: Message, timeout: float) -> Message:
        message.received += 1
        message.receipt = f"{message.id}#{message.received}"
        message.since, message.visible = self.now(), self.now() + timeout
        return message

    def delete_message_batch(self, QueueUrl: str, Entries: list[Answer]) -> Answer:  # noqa: N803 - AWS' names
        queue = self._begin("delete", QueueUrl)
        return _each(Entries, lambda entry: queue.messages.remove(queue._held(entry)))

    def change_message_visibility_batch(self, QueueUrl: str, Entries: list[Answer]) -> Answer:  # noqa: N803 - AWS' names
        queue = self._begin("change", QueueUrl)
        return _each(Entries, queue._changed)

    def _changed(self, entry: Answer) -> None:
        message, until = self._held(entry), self.now() + entry["VisibilityTimeout"]
        if until - message.since > LONGEST:
            raise ValueError("InvalidParameterValue")
        message.visible = until

    def _held(self, entry: Answer) -> Message:
        message = next((each for each in self.messages if each.receipt == entry["ReceiptHandle"]), None)
        if message is None or message.visible <= self.now():
            raise ValueError("InvalidParameterValue" if message else "ReceiptHandleIsInvalid")
        return message

    def get_queue_attributes(self, QueueUrl: str, AttributeNames: list[str]) -> Answer:  # noqa: N803 - AWS' names
        queue = self._begin("attributes", QueueUrl)
        known = {"ApproximateNumberOfMessages": str(sum(each.visible <= queue.now() for each in queue.messages))}
        known["ApproximateNumberOfMessagesNotVisible"] = str(sum(each.visible > queue.now() for each in queue.messages))
        if queue.dead:
            arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue.dead.name}"
            known["RedrivePolicy"] = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": queue.most_receives})
        return {"Attributes": {name: value for name, value in known.items() if name in AttributeNames}}

    def get_queue_url(self, QueueName: str, QueueOwnerAWSAccountId: str) -> Answer:  # noqa: N803 - AWS' names
        for queue in filter(None, (self, self.dead)):
            if (queue.name, ACCOUNT) == (QueueName, QueueOwnerAWSAccountId):
                return {"QueueUrl": self._begin("url", queue.url).url}
        raise refused("AWS.SimpleQueueService.NonExistentQueue")

    def _begin(self, call: str, url: str) -> Fifo:
        self.calls.append(call)
        if self.trouble:
            raise self.trouble.pop(0)
        queue = next((each for each in (self, self.dead) if each and each.url == url), None)
        if queue is None:
            raise refused("AWS.SimpleQueueService.NonExistentQueue")
        return queue


def refused(code: str) -> ClientError:
    """Return what botocore raises for a code of AWS."""
    return ClientError({"Error": {"Code": code, "Message": f"{code} of arn:aws:sqs:{REGION}:{ACCOUNT}"}}, "Call")


def _each(entries: list[Answer], do: Callable[[Answer], None]) -> Answer:
    answer: Answer = {"Successful": [], "Failed": []}
    for entry in entries:
        try:
            do(entry)
            answer["Successful"].append({"Id": entry["Id"]})
        except ValueError as error:
            answer["Failed"].append(
                {"Id": entry["Id"], "SenderFault": True, "Code": str(error), "Message": "the receipt handle has expired"}
            )
    return answer


def _row(message: Message) -> Answer:
    attributes = {
        "ApproximateReceiveCount": str(message.received),
        "MessageGroupId": message.group,
        "SentTimestamp": str(int(message.sent * 1000)),
    }
    return {"MessageId": message.id, "ReceiptHandle": message.receipt, "Body": message.body, "Attributes": attributes}
