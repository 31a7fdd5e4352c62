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
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from handler.app import log
from handler.model.errors import AnnealError
from handler.model.failure_trace import raised

if TYPE_CHECKING:
    from handler.app.tables import Tables

_LOG = logging.getLogger("anneal.function")
T = TypeVar("T")
Function = Callable[[Any, Any], Any]


class Unstarted(Exception):
    """A function can't be put together now. Its text is fit for every log."""


class Lazy(Generic[T]):
    """Makes one thing at its first use and keeps it, for all threads. A failure isn't kept: the next caller tries again."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []
        self._lock = threading.Lock()

    def get(self) -> T:
        """Return it; raises what making it raises."""
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]


def _made(name: str, make: Callable[[], Function]) -> Lazy[Function]:
    def made() -> Function:
        log.configure(sys.stdout)  # the runtime has configured the root logger, and not in our form
        try:
            return make()
        except AnnealError as error:
            seen = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, its own text might show a value
            seen = raised(error)
        _LOG.error("the function can't start", extra={"fields": {"function": name, "seen": seen}})
        raise Unstarted(seen)

    return Lazy(made)


class Functions:
    """The entry points of one program. `added`: makes its tables, at the first event; None: ours."""

    def __init__(self, added: Callable[[], Tables] | None = None) -> None:
        self._added = added
        makers = {
            "webhook": lambda: self._door("webhook"),
            "api": lambda: self._door("api"),
            "worker": self._worker,
            "tick": self._minutes,
            "codecommit": self._codecommit,
            "wsgi": self._wsgi,
        }
        self.made = {name: _made(name, make) for name, make in makers.items()}

    # --- what a cloud calls
    def webhook(self, event: Any, context: Any) -> Any:
        """Answer a delivery of a git host: function URL, HTTP API, REST API or load balancer."""
        return self._answered("webhook", event, context)

    def api(self, event: Any, context: Any) -> Any:
        """Answer a named token's request."""
        return self._answered("api", event, context)

    def worker(self, event: Any, context: Any) -> Any:
        """Run what messages of the queue ask for; return those that must come again. Raises Unstarted: all of them must."""
        try:
            function = self.made["worker"].get()
        except Unstarted:
            from handler.functions.redelivery import put_off

            put_off(event, os.environ)
            raise
        return function(event, context)

    def tick(self, event: Any, context: Any) -> Any:
        """Enqueue what is due in the minute before the event. Raises Unstarted, QueueUnavailable: the event comes again."""
        return self.made["tick"].get()(event, context)

    def codecommit(self, event: Any, context: Any) -> Any:
        """Enqueue what a push of CodeCommit asks for. Raises Unstarted, QueueUnavailable: the event comes again."""
        return self.made["codecommit"].get()(event, context)

    def wsgi(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Be the door of git hosts as WSGI, for other clouds' adapters; put together at the first request, as the others are."""
        try:
            app = self.made["wsgi"].get()
        except Unstarted:
            answer = _unstarted()
            start(f"{answer['statusCode']} Service Unavailable", list(answer["headers"].items()))
            return [answer["body"].encode()]
        found: Iterable[bytes] = app(environ, start)
        return found

    def _answered(self, name: str, event: Any, context: Any) -> Any:
        """Answer an HTTP event; 503 where the function can't start: a git host shows the delivery as failed and can send it again."""
        try:
            function = self.made[name].get()
        except Unstarted:
            return _unstarted()
        return function(event, context)

    # --- put together at the first event
    def _door(self, name: str) -> Function:
        from handler.functions import gateway, http_entry

        return gateway.served({"webhook": http_entry.webhooks, "api": http_entry.api}[name](os.environ, self._added))

    def _wsgi(self) -> Function:
        from handler.functions import http_entry

        return http_entry.webhooks(os.environ, self._added)

    def _worker(self) -> Function:
        from handler.functions.batch import batch

        return batch(os.environ, self._added)

    def _minutes(self) -> Function:
        from handler.functions.scheduled import minutes

        return minutes(os.environ, self._added)

    def _codecommit(self) -> Function:
        from handler.functions.codecommit_events import of_codecommit

        return of_codecommit(os.environ, self._added)


def _unstarted() -> Any:
    from handler.functions import gateway

    return gateway.plain(503, "not-started", "not started; the function's log says why")


OURS = Functions()
webhook, api, worker, tick, codecommit, wsgi = OURS.webhook, OURS.api, OURS.worker, OURS.tick, OURS.codecommit, OURS.wsgi
