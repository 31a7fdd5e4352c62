"""Events as AWS sends them: HTTP in each of its forms, messages of a queue, the minute's schedule; and what stands beside them."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from typing import Any

from handler.model.event import Job
from handler.queues import message
from handler.queues.pending import Work

Json = dict[str, Any]


class Context:
    """What the runtime says of an invocation that may take so many seconds."""

    aws_request_id = "8f7d1c2e-0000-4000-8000-5f6a7b8c9d0e"

    def __init__(self, seconds: float = 300.0) -> None:
        self._end = time.monotonic() + seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(max(self._end - time.monotonic(), 0.0) * 1000)


def _wrapped(body: bytes, encoded: bool) -> Json:
    return {"isBase64Encoded": encoded, "body": base64.b64encode(body).decode() if encoded else body.decode()}


def function_url(method: str, path: str, headers: Mapping[str, str], body: bytes = b"", *, encoded: bool = False) -> Json:
    """A function URL's and an HTTP API's: payload format 2.0, names of headers in lower case, cookies apart."""
    path, _, query = path.partition("?")
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.7", "userAgent": "GitHub-Hookshot/1"}
    context = {
        "accountId": "anonymous",
        "apiId": "url",
        "domainName": "url.lambda-url.eu-central-1.on.aws",
        "http": http,
        "stage": "$default",
    }
    sent = {key.lower(): value for key, value in headers.items()}
    cookies = {"cookies": sent.pop("cookie").split("; ")} if "cookie" in sent else {}
    return {
        **cookies,
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": sent | {"x-forwarded-proto": "https", "x-forwarded-port": "443", "content-length": str(len(body))},
        "requestContext": context,
        **_wrapped(body, encoded),
    }


def http_api(method: str, path: str, headers: Mapping[str, str], body: bytes = b"", *, encoded: bool = False) -> Json:
    """An HTTP API's of a stage with a name, which stands before the path."""
    found = function_url(method, path, headers, body, encoded=encoded)
    return {**found, "rawPath": f"/live{found['rawPath']}", "requestContext": {**found["requestContext"], "stage": "live"}}


def rest(method: str, path: str, headers: Mapping[str, str], body: bytes = b"", *, encoded: bool = False) -> Json:
    """A REST API's: payload format 1.0, headers as sent, each also as a list."""
    path, _, query = path.partition("?")
    asked = dict(part.split("=") for part in query.split("&")) if query else None
    return {
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": method,
        "headers": {**headers, "X-Forwarded-Proto": "https"},
        "multiValueHeaders": {key: [value] for key, value in {**headers, "X-Forwarded-Proto": "https"}.items()},
        "queryStringParameters": asked,
        "multiValueQueryStringParameters": {key: [value] for key, value in asked.items()} if asked else None,
        "requestContext": {"stage": "live", "path": f"/live{path}", "identity": {"sourceIp": "192.0.2.7"}},
        **_wrapped(body, encoded),
    }


def balancer(method: str, path: str, headers: Mapping[str, str], body: bytes = b"", *, encoded: bool = False) -> Json:
    """A load balancer's, names of headers in lower case."""
    path, _, query = path.partition("?")
    return {
        "requestContext": {"elb": {"targetGroupArn": "arn:aws:elasticloadbalancing:eu-central-1:111122223333:targetgroup/anneal/1"}},
        "httpMethod": method,
        "path": path,
        "queryStringParameters": dict(part.split("=") for part in query.split("&")) if query else {},
        "headers": {key.lower(): value for key, value in headers.items()} | {"x-forwarded-proto": "https", "x-forwarded-port": "443"},
        **_wrapped(body, encoded),
    }


def balancer_of_lists(method: str, path: str, headers: Mapping[str, str], body: bytes = b"", *, encoded: bool = False) -> Json:
    """A load balancer's whose target group has multi-value headers on."""
    found = balancer(method, path, headers, body, encoded=encoded)
    lists = {"multiValueHeaders": {key: [value] for key, value in found.pop("headers").items()}}
    return found | lists | {"multiValueQueryStringParameters": {key: [value] for key, value in found.pop("queryStringParameters").items()}}


FORMS: Mapping[str, Callable[..., Json]] = {
    "function URL": function_url,
    "HTTP API with a stage": http_api,
    "REST API": rest,
    "load balancer": balancer,
    "load balancer, lists": balancer_of_lists,
}


def messages(*bodies: str | Job, times: int = 1) -> Json:
    """A batch of a FIFO queue: jobs, or bodies as they are."""
    return {"Records": [_record(number, body, times) for number, body in enumerate(bodies)]}


def _record(number: int, body: str | Job, times: int) -> Json:
    work = body if isinstance(body, str) else Work(body, (body.run,))
    return {
        "messageId": f"m{number}",
        "receiptHandle": f"handle-{number}",
        "body": work if isinstance(work, str) else message.encode(work),
        "attributes": {
            "ApproximateReceiveCount": str(times),
            "SentTimestamp": "1772366400000",
            "MessageGroupId": message.group(work.job) if isinstance(work, Work) else "shop",
            "SequenceNumber": "18870000000000000000",
        },
        "messageAttributes": {},
        "md5OfBody": "",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:111122223333:anneal.fifo",
        "awsRegion": "eu-central-1",
    }


def every_minute(at: str = "2026-03-01T12:00:00Z") -> Json:
    """What EventBridge sends each minute."""
    return {
        "version": "0",
        "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": "111122223333",
        "time": at,
        "region": "eu-central-1",
        "resources": ["arn:aws:events:eu-central-1:111122223333:rule/anneal-tick"],
        "detail": {},
    }
