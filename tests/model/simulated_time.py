"""Puts the handler's clocks, sleeps and threads into the conductor's hand (`taking_turns`), module by module; nothing of its logic.

Work that runs on a few threads at once runs one after the other here, in an order that changes: what lands before a kill is any part of it.
"""

from __future__ import annotations

import contextlib
import queue
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from handler.cluster import watch
from tests.model.taking_turns import TurnClock, TurnLock, TurnThread, TurnTime, sleep

_TIMED = (
    "cluster.api",
    "cluster.connect",
    "engine.planner.prune_check",
    "engine.apply.apply",
    "engine.run.context",
    "app.build",
    "engine.reconcile",
)
_LOOK_AGAIN = 1.0
order = random.Random(0)
"""In which order parallel work is done; a test seeds it."""


class OneByOne:
    """A ThreadPoolExecutor without threads."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> OneByOne:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, run: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        numbered = list(enumerate(items))
        order.shuffle(numbered)
        found = {number: run(item) for number, item in numbered}
        return [found[number] for number in sorted(found)]

    def submit(self, run: Callable[..., Any], *arguments: Any) -> None:
        run(*arguments)

    def shutdown(self, **_: object) -> None:
        pass


def follow(api: Any, scopes: Sequence[Any], judge: Callable[[watch.Seen], bool], timeout: float, stop: watch.Stop) -> None:
    """Wait as `handler.cluster.watch` does, by LISTs alone."""
    end = TurnTime.monotonic() + timeout
    while True:
        for identity in stop() or ():
            next(scope for scope in scopes if identity in scope.wanted).open.discard(identity)
        lines: queue.Queue[Any] = queue.Queue()
        for scope in scopes:
            watch._list(api, scope, lines)
        while not lines.empty():
            scope, seen = lines.get()
            (scope.open.discard if judge(seen) else scope.open.add)(seen[0])
        if not any(scope.open for scope in scopes) or TurnTime.monotonic() >= end:
            return
        sleep(_LOOK_AGAIN)


@contextlib.contextmanager
def simulated() -> Iterator[None]:
    """Within this, the handler's time and threads are the conductor's."""
    unbounded = SimpleNamespace(Queue=lambda maxsize=0: queue.Queue(), Full=queue.Full)
    threads = SimpleNamespace(Thread=TurnThread, RLock=TurnLock, Event=threading.Event)
    replaced = {
        **{f"handler.{name}.time": TurnTime for name in _TIMED},
        "handler.cluster.api.random": SimpleNamespace(random=lambda: 0.5),
        "handler.cluster.parallel.ThreadPoolExecutor": OneByOne,
        "handler.cluster.live.ThreadPoolExecutor": OneByOne,
        "handler.cluster.live.queue": unbounded,
        "handler.cluster.wait_until.feed": follow,
        "handler.state.lease.SystemClock": TurnClock,
        "handler.state.lease.threading": threads,
    }
    with contextlib.ExitStack() as stack:
        for name, made in replaced.items():
            stack.enter_context(patch(name, made))
        yield
