"""The way to Amazon SQS: a client with bounded patience, and its errors in our words. botocore is loaded when a client is first made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from handler.model.errors import OperatorError, SenderError

CONNECT, READ, TRIES = 2.0, 5.0, 2
"""Seconds to connect and to be answered, and how often."""
_REGION = re.compile(r"https?://(?:sqs[.-])?([a-z]{2}(?:-[a-z]+)+-[0-9])\.(?:queue\.)?amazonaws\.com")
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")
_WAYS_OUT = {
    "QueueDoesNotExist": ("doesn't exist", "create it, or mend ANNEAL_QUEUE_URL and `queue.sqs.url`"),
    "NonExistentQueue": ("doesn't exist", "create it, or mend ANNEAL_QUEUE_URL and `queue.sqs.url`"),
    "InvalidAddress": ("isn't the address of a queue", "mend ANNEAL_QUEUE_URL and `queue.sqs.url`"),
    "AccessDenied": ("access denied", "allow our identity {right} on it"),
    "AccessDeniedException": ("access denied", "allow our identity {right} on it"),
    "KmsAccessDenied": ("access to its key denied", "allow our identity kms:GenerateDataKey and kms:Decrypt on it"),
    "InvalidClientTokenId": ("the credentials are unknown", "give the process valid AWS credentials"),
    "UnrecognizedClientException": ("the credentials are unknown", "give the process valid AWS credentials"),
    "SignatureDoesNotMatch": ("the credentials are wrong", "give the process valid AWS credentials"),
    "ExpiredToken": ("the credentials have expired", "give the process new AWS credentials"),
    "ExpiredTokenException": ("the credentials have expired", "give the process new AWS credentials"),
    "Throttling": ("throttled", "try again, or ask AWS for high throughput"),
    "ThrottlingException": ("throttled", "try again, or ask AWS for high throughput"),
    "RequestThrottled": ("throttled", "try again, or ask AWS for high throughput"),
    "OverLimit": ("too many of its messages are being worked on", "add workers"),
}
_KINDS = {
    "NoCredentialsError": ("no AWS credentials were found", "give the process a role, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    "PartialCredentialsError": ("AWS credentials are incomplete", "give the process a role, or both of its keys"),
    "CredentialRetrievalError": ("AWS credentials can't be fetched", "look at the role of the process"),
    "ProfileNotFound": ("AWS_PROFILE names a profile that doesn't exist", "mend AWS_PROFILE"),
    "NoRegionError": ("no AWS region is known", "set AWS_REGION"),
    "ConnectTimeoutError": ("isn't reached in time", "look at the network, then try again"),
    "EndpointConnectionError": ("isn't reached", "look at the network, then try again"),
    "ReadTimeoutError": ("doesn't answer in time", "try again"),
}


class QueueUnavailable(SenderError, code="queue-unavailable", status=503):
    """The queue takes or gives nothing now; the text says why. A delivery is answered 503: send it again."""


class QueueInvalid(OperatorError, code="queue-invalid"):
    """No queue is configured, or the one that is has no dead-letter queue."""


def client(url: str, longest_wait: float = 0.0) -> Any:
    """Make a client for a queue, in the region that its URL names. `longest_wait`: seconds that an answer may be put off by long polling.

    Raises QueueUnavailable.
    """
    from botocore.config import Config  # noqa: PLC0415 - without such a queue it isn't loaded
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - the same
    from botocore.session import get_session  # noqa: PLC0415 - the same

    found = _REGION.match(url)
    config = Config(
        connect_timeout=CONNECT,
        read_timeout=READ + longest_wait,
        retries={"total_max_attempts": TRIES, "mode": "standard"},
        max_pool_connections=16,
        user_agent_extra="anneal",
    )
    try:
        return get_session().create_client("sqs", region_name=found.group(1) if found else None, config=config)
    except BotoCoreError as error:
        raise refusal(url, "", error) from error


def call(made: Any, url: str, method: str, **arguments: Any) -> dict[str, Any]:
    """Call a client about a queue. Raises QueueUnavailable, naming the queue and the way out."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - with a client it is loaded already

    try:
        answer: dict[str, Any] = getattr(made, method)(**arguments)
    except (BotoCoreError, ClientError) as error:
        raise refusal(url, method, error) from error
    return answer


def refusal(url: str, method: str, error: Exception) -> QueueUnavailable:
    """Return our error for one of botocore's."""
    seen, way_out = _way_out(_code((getattr(error, "response", None) or {}).get("Error", {})), type(error), method)
    return QueueUnavailable.of(named(url), seen, fix=way_out)


def failed(url: str, method: str, rows: list[dict[str, Any]]) -> QueueUnavailable:
    """Return our error for what a batch's answer says of some of its entries."""
    seen, way_out = _way_out(_code(rows[0]), Exception, method)
    return QueueUnavailable.of(named(url), f"{len(rows)} of the messages: {seen}", fix=way_out)


def named(url: str) -> str:
    """Name a queue for people, without the account."""
    return f"queue {url.rpartition('/')[2]}"


def _code(refusal: Mapping[str, Any]) -> str:
    """Return an answer's error code, without its namespace; empty: there is no answer."""
    code = str(refusal.get("Code", "")).rpartition(".")[2]
    return code if not code or _CODE.fullmatch(code) else "an unknown code"


def _way_out(code: str, kind: type[Exception], method: str) -> tuple[str, str]:
    right = _RIGHTS.get(method, "the queue's actions")
    if code:
        seen, way_out = _WAYS_OUT.get(code, (f"answers {code}", "try again"))
        return seen, way_out.format(right=right)
    known = (_KINDS[each.__name__] for each in kind.__mro__ if each.__name__ in _KINDS)
    return next(known, (f"can't be used now ({kind.__name__})", "try again"))


_RIGHTS = {
    "send_message_batch": "sqs:SendMessage",
    "receive_message": "sqs:ReceiveMessage",
    "delete_message_batch": "sqs:DeleteMessage",
    "change_message_visibility_batch": "sqs:ChangeMessageVisibility",
    "get_queue_attributes": "sqs:GetQueueAttributes",
    "get_queue_url": "sqs:GetQueueUrl",
}
