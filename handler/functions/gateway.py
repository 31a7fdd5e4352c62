"""HTTP as events: what a function URL, API Gateway and a load balancer send becomes a WSGI request, and the answer an answer of theirs.

Law: the body is the bytes that were signed, whichever way they are wrapped, and its length is its own, whatever a header says. What is no
HTTP request is answered 400, and nothing that a sender writes ends the function. What is slow is given up before the function is ended.
"""

from __future__ import annotations

import json
import logging
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from handler.model import deadline
from handler.web.repeated_headers import each_once

_LOG = logging.getLogger("anneal.web")
Json = dict[str, Any]
Answer = Callable[[Any, Any], Json]
Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
SAFETY = 3.0  # seconds before the end of the function at which nothing is waited for any more
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^`|~-]+")
"""The names of headers that count (RFC 9110, 5.1), without `_`: WSGI would take that for `-`, and the name for another's."""
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError)


def served(app: Wsgi) -> Answer:
    """Return the handler of HTTP events for a WSGI application that raises nothing."""
    from apig_wsgi import make_lambda_handler

    adapted = make_lambda_handler(whole(app))

    def answer(event: Any, context: Any) -> Json:
        try:
            _check_headers(event)
            with deadline.until(_end(context)):
                found: Json = adapted(_with_each_once(_with_known_names(_without_stage(event))), context)
        except _MALFORMED as error:
            _LOG.warning("an event is no HTTP request", extra={"fields": {"seen": type(error).__name__}})
            return plain(400, "bad-payload", "not an HTTP request as a function URL, API Gateway or a load balancer sends it")
        return found

    return answer


def plain(status: int, code: str, message: str) -> Json:
    """Return an answer of ours without an application, in a form that all three understand."""
    body: Json = {"matched": [], "ignored": [], "run": None, "code": code, "error": message}
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    multiple = {name: [value] for name, value in headers.items()}
    return {
        "statusCode": status,
        "headers": headers,
        "multiValueHeaders": multiple,
        "isBase64Encoded": False,
        "body": json.dumps(body),
    }


def whole(app: Wsgi) -> Wsgi:
    """Return an application whose environ says that the body is complete: a function gets it whole, however its sender framed it."""

    def call(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        return app(environ, start)

    return call


def _end(context: Any) -> float:
    """Return when everything must have returned, in monotonic seconds."""
    left = getattr(context, "get_remaining_time_in_millis", None)
    return time.monotonic() + left() / 1000 - SAFETY if left else math.inf


def _with_each_once(event: Any) -> Any:
    """Return an event of which each header has one value: of several the adapter takes the last or puts commas between."""
    key = "multiValueHeaders" if "multiValueHeaders" in event else "headers"
    given = {name: each if isinstance(each, list) else [each] for name, each in (event.get(key) or {}).items()}
    once = each_once((name, value) for name, values in given.items() for value in values)
    return {**event, key: {name: [value] for name, value in once.items()} if key == "multiValueHeaders" else once}


def _with_known_names(event: Any) -> Any:
    """Return an event without the headers that gunicorn would drop: no sender adds one under a like name to those that a proxy sets."""
    found = {key: event[key] or {} for key in ("headers", "multiValueHeaders") if key in event}
    return {**event, **{key: {name: each for name, each in named.items() if _NAME.fullmatch(name)} for key, named in found.items()}}


def _check_headers(event: Any) -> None:
    single, many = event.get("headers") or {}, event.get("multiValueHeaders") or {}
    values = [*single.values(), *(event.get("cookies") or ()), *(value for each in many.values() for value in list.copy(each))]
    if not all(isinstance(value, str) for value in values):
        raise TypeError


def _without_stage(event: Any) -> Any:
    """Return an event of an HTTP API without the name of its stage before the path; of the stage `$default` there is none."""
    stage = event["requestContext"].get("stage") if isinstance(event, Mapping) and event.get("version") == "2.0" else ""
    if not stage or not event["rawPath"].startswith(f"/{stage}/"):
        return event
    return {**event, "rawPath": event["rawPath"].removeprefix(f"/{stage}")}
