"""Bounded reads of clusters for status views: one at a time a cluster, each with a deadline, beside the last result.

Law: a cluster that is slow or broken delays a view by no more than the deadline, costs one thread however often it is read, and fails no
other. Its last result is shown with its age and the trouble; a late result serves the next view.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from handler.model.errors import AnnealError, ClusterUnavailable, OperatorError
from handler.model.singleflight import SingleFlight
from handler.state.record_format import stamp

_LOG = logging.getLogger("anneal.read")
T = TypeVar("T")


class LookFailed(OperatorError, code="internal"):
    """A read of a cluster failed unexpectedly."""


class ClusterLooks:
    """One read at a time a place, shared by all callers: a place that never answers holds one thread."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._running: SingleFlight[Hashable, Any] = SingleFlight()

    def all(self, looks: Mapping[Any, Callable[[], Any]], patience: float = 0.0) -> dict[Any, Any]:
        """Return what each look finds, or its AnnealError; ClusterUnavailable: it is late; LookFailed: anything else.

        `patience`: seconds to wait, where that is more than the deadline.
        """
        seconds = max(self._deadline, patience)
        end = time.monotonic() + seconds
        started = {place: self._join(place, look) for place, look in looks.items()}
        return {place: self._awaited(future, end, seconds) for place, future in started.items()}

    def _awaited(self, future: Future[Any], end: float, seconds: float) -> Any:
        try:
            return future.result(max(end - time.monotonic(), 0.0))
        except TimeoutError:
            return ClusterUnavailable.of("cluster", f"hasn't answered within {seconds:g} s")
        except RuntimeError as error:  # there is no thread for it
            return _mistake(error)

    def _join(self, place: Hashable, look: Callable[[], Any]) -> Future[Any]:
        return self._running.start(place, partial(_found, look), thread="read")


def _found(look: Callable[[], Any]) -> Any:
    try:
        return look()
    except AnnealError as error:
        return error
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is this place's trouble alone
        return _mistake(error)


def _mistake(error: BaseException) -> AnnealError:
    """Log an unexpected error with its trace; the answer only names its class."""
    _LOG.error("a look failed", exc_info=error)
    return LookFailed.of("anneal", f"internal error: {type(error).__name__}", fix="the worker's log has its trace")


@dataclass(frozen=True, slots=True)
class LastSeen(Generic[T]):
    """What a place has shown last, None: nothing ever. `at`: when, seconds since the epoch, 0: never; `trouble`: why it isn't of now."""

    what: T | None = None
    at: float = 0.0
    trouble: AnnealError | None = None

    def facts(self) -> dict[str, Any]:
        """Return how old it is and why, as answers say it."""
        return {**aged(self.at), "trouble": problem(self.trouble) if self.trouble else None}


class LastSeenByPlace(Generic[T]):
    """What places have shown last; of more than `most` the longest unasked are forgotten. Safe to share between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[Hashable, LastSeen[T]] = OrderedDict()
        self._lock = threading.Lock()

    def all(self, looks: ClusterLooks, wanted: Mapping[Any, Callable[[], T]], patience: float = 0.0) -> dict[Any, LastSeen[T]]:
        """Return what each place shows now, or did when it last answered. `patience`: see `ClusterLooks.all`."""
        found = looks.all({place: partial(self._seen, place, look) for place, look in wanted.items()}, patience)
        return {place: self._last(place, seen) if isinstance(seen, AnnealError) else seen for place, seen in found.items()}

    def last(self) -> dict[Hashable, T]:
        """Return what each place has shown last; none is asked."""
        with self._lock:
            return {place: sight.what for place, sight in self._known.items() if sight.what is not None}

    def sight(self, place: Hashable) -> LastSeen[T]:
        """Return what one place has shown last."""
        with self._lock:
            return self._known.get(place, LastSeen())

    def _seen(self, place: Hashable, look: Callable[[], T]) -> LastSeen[T]:
        at = time.time()
        sight = LastSeen(look(), at)
        with self._lock:
            self._known[place] = sight
            self._known.move_to_end(place)
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        return sight

    def _last(self, place: Hashable, trouble: AnnealError) -> LastSeen[T]:
        return replace(self.sight(place), trouble=trouble)


def aged(at: float) -> dict[str, Any]:
    """Return when something was seen, and how many seconds ago; 0: never."""
    return {"seen": stamp(at) if at else "", "age": max(int(time.time() - at), 0) if at else None}


def problem(error: AnnealError) -> dict[str, Any]:
    """Return an error as answers say it."""
    return {"code": error.code, "message": str(error)}
