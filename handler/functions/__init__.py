"""The entry points of cloud functions, each `(event, context)`: AWS Lambda calls `handler.functions.webhook` and its siblings.

    webhook      HTTP events         verify, match, enqueue                 webhook secrets; the queue
    api          HTTP events         tokens ask for runs and read records   token secrets; the queue; reads clusters
    tick         each minute         enqueue what is due                    the queue; reads clusters
    codecommit   EventBridge         a push of CodeCommit                   the queue
    worker       messages            run, record, acknowledge               git secrets; the queue; writes clusters

Law: importing this module loads next to nothing, and each function loads its own parts alone, at its first event. They are made once in the
life of a process; where that fails the error is logged, without a secret, and the next event tries again.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from handler import log
from handler.functions.once import Once
from handler.model.errors import AnnealError

_LOG = logging.getLogger("anneal.function")
Function = Callable[[Any, Any], Any]


class Unstarted(Exception):
    """A function can't be put together now. Its text is fit for every log."""


def _made(name: str, make: Callable[[], Function]) -> Once[Function]:
    def made() -> Function:
        log.configure(str, sys.stdout)  # the runtime has configured the root logger, and not in our form
        try:
            return make()
        except AnnealError as error:
            told = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, its own text might show a value
            told = f"{type(error).__name__} at {_place(error)}"
        _LOG.error("the function can't start", extra={"fields": {"function": name, "seen": told}})
        raise Unstarted(told)

    return Once(made)


def _place(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename.rpartition('/')[2]}:{last.lineno}"


def _door(name: str) -> Function:
    from handler.functions import doors, gateway  # noqa: PLC0415 - at the first event

    return gateway.served({"webhook": doors.webhooks, "api": doors.api}[name](os.environ))


def _wsgi() -> Function:
    from handler.functions import doors  # noqa: PLC0415 - at the first request

    return doors.webhooks(os.environ)


def _worker() -> Function:
    from handler.functions.batch import batch  # noqa: PLC0415 - at the first event

    return batch(os.environ)


def _minutes() -> Function:
    from handler.functions.scheduled import minutes  # noqa: PLC0415 - at the first event

    return minutes(os.environ)


def _codecommit() -> Function:
    from handler.functions.pushes import of_codecommit  # noqa: PLC0415 - at the first event

    return of_codecommit(os.environ)


_FUNCTIONS = {
    "webhook": _made("webhook", lambda: _door("webhook")),
    "api": _made("api", lambda: _door("api")),
    "worker": _made("worker", _worker),
    "tick": _made("tick", _minutes),
    "codecommit": _made("codecommit", _codecommit),
    "wsgi": _made("wsgi", _wsgi),
}


def webhook(event: Any, context: Any) -> Any:
    """Answer a delivery of a git host: function URL, HTTP API, REST API or load balancer."""
    return _answered("webhook", event, context)


def api(event: Any, context: Any) -> Any:
    """Answer a named token's request."""
    return _answered("api", event, context)


def worker(event: Any, context: Any) -> Any:
    """Run what messages of the queue ask for; return those that must come again. Raises Unstarted: all of them must."""
    try:
        function = _FUNCTIONS["worker"].get()
    except Unstarted:
        from handler.functions.late import put_off  # noqa: PLC0415 - only now

        put_off(event, os.environ)
        raise
    return function(event, context)


def tick(event: Any, context: Any) -> Any:
    """Enqueue what is due in the minute before the event. Raises Unstarted, QueueUnavailable: the event comes again."""
    return _FUNCTIONS["tick"].get()(event, context)


def codecommit(event: Any, context: Any) -> Any:
    """Enqueue what a push of CodeCommit asks for. Raises Unstarted, QueueUnavailable: the event comes again."""
    return _FUNCTIONS["codecommit"].get()(event, context)


def wsgi(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    """Be the door of git hosts as WSGI, for other clouds' adapters; put together at the first request, as the others are."""
    try:
        app = _FUNCTIONS["wsgi"].get()
    except Unstarted:
        answer = _unstarted()
        start(f"{answer['statusCode']} Service Unavailable", list(answer["headers"].items()))
        return [answer["body"].encode()]
    found: Iterable[bytes] = app(environ, start)
    return found


def _answered(name: str, event: Any, context: Any) -> Any:
    """Answer an HTTP event; 503 where the function can't start, so that a git host shows the delivery as failed and can send it again."""
    try:
        function = _FUNCTIONS[name].get()
    except Unstarted:
        return _unstarted()
    return function(event, context)


def _unstarted() -> Any:
    from handler.functions import gateway  # noqa: PLC0415 - at the first event

    return gateway.plain(503, "not-started", "not started; the function's log says why")
