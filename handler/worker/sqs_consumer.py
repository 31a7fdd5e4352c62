"""The worker's end of a queue that several containers share: messages become work, and work that has ended acknowledges them.

Law: messages are received while a thread is free, hidden from others while they are held, and given back when the process stops. A
target's are done in order: one asked by name waits for all before it, and where those fail all behind go back, too. One that can't be read
goes back at once, until the queue moves it to the dead letters.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from handler.model.backoff import TRANSIENT, Backoff
from handler.model.errors import SenderError
from handler.model.instance import template_of
from handler.model.pull_request import lead_target
from handler.model.result import Result
from handler.queues import message
from handler.queues.message_outcome import early, settles
from handler.queues.pending import Work
from handler.queues.sqs import BATCH, Received, SqsQueue
from handler.queues.sqs_client import QueueUnavailable

_LOG = logging.getLogger("anneal.queue")
WAIT = 10.0
"""Seconds of one long poll; a worker that stops waits for its end, for what it brings would be hidden from others."""
VISIBLE = 60.0
"""Seconds until another worker gets what this one held, should it die; extended every third."""
PARKED, MOST_PARKED, STUCK = 32, 1000, 5.0
"""Targets that may wait here for others of their cluster or git host; how many once one has waited `STUCK` seconds, so that what hangs
keeps no thread from the others."""
LOOK_EVERY = 0.5
"""Seconds until it is looked again whether a thread is free."""
PAUSES = Backoff(1.0, 30.0)
"""Between two questions to a queue that gives nothing."""


@dataclass(slots=True)
class _Group:
    """One target's messages, by the run they ask for: those that the worker has since `since` (monotonic), and those behind, in order."""

    given: dict[str, Received] = field(default_factory=dict)
    behind: deque[tuple[Work, Received]] = field(default_factory=deque)
    since: float = 0.0

    def held(self) -> list[Received]:
        return [*self.given.values(), *(each for _, each in self.behind)]


class SqsConsumer:
    """Takes from one queue. `names`: the targets that this worker may work on; `take`: hands work to it.

    `busy`: the targets that it works on; `resting`: those of them whose runs only wait, and leave their place to others.
    """

    def __init__(
        self,
        queue: SqsQueue,
        names: Collection[str],
        threads: int,
        take: Callable[[Work], None],
        busy: Callable[[], Collection[str]],
        resting: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._queue = queue
        self._names = names
        self._threads = threads
        self._take = take
        self._busy = busy
        self._resting = resting
        self._groups: dict[str, _Group] = {}
        self._lock = threading.Lock()
        self._stop, self._ended = threading.Event(), threading.Event()
        self._receiver = threading.Thread(target=self._receive, name="intake", daemon=True)
        self._keeper = threading.Thread(target=self._keep, name="visibility", daemon=True)

    def start(self) -> None:
        """Take messages."""
        self._receiver.start()
        self._keeper.start()

    def halt(self) -> None:
        """Ask for no more messages."""
        self._stop.set()

    def stop(self) -> None:
        """Give back what is held."""
        self.halt()
        if self._receiver.ident:
            self._receiver.join(WAIT)
        with self._lock:
            held = [each for group in self._groups.values() for each in group.held()]
            self._groups.clear()
        self._ended.set()
        self._back(held, 0)

    def ended(self, work: Work, result: Result, *, cut: bool) -> None:
        """Acknowledge what a run has settled, or let it come again. `cut`: the worker stops, and the run may have been stopped."""
        settled = settles(work, result, cut=cut)
        if cut and not settled:
            return  # given back by `stop`: our own last poll would get it now
        with self._lock:
            group = self._groups.get(work.job.target, _Group())
            mine = [group.given.pop(run) for run in work.runs if run in group.given]
            back = [] if settled or not mine else [*mine, *(each for _, each in group.behind)]
            if back:
                group.behind.clear()
        try:
            if back:
                self._back(back, TRANSIENT.after(max(each.count for each in mine)))
            elif mine:
                self._acknowledge(mine)
        finally:
            self._hand(work.job.target)

    def holds(self, work: Work) -> bool:
        """Whether messages wait for the end of this work; until then no worker gets its target's next."""
        with self._lock:
            group = self._groups.get(work.job.target)
            return group is not None and not group.given.keys().isdisjoint(work.runs)

    def left(self, work: Work) -> bool:
        """Leave work to another worker: its messages go back, a push or plan without one gets one. False: it is left to none."""
        if self.holds(work):
            return True
        if not (work.job.hint or work.job.deliveries or work.job.is_plan):
            return False
        try:
            self._queue.put(work.job)
        except SenderError as error:
            _warn("a request isn't left to another worker; a push is found by the tick", error)
            return False
        return True

    def _receive(self) -> None:
        failures = 0
        while not self._stop.is_set():
            most = self._room()
            if not most:
                self._stop.wait(LOOK_EVERY)
                continue
            try:
                found = self._queue.receive(most, WAIT, VISIBLE)
                failures = 0
                self._received(found)
            except QueueUnavailable as error:
                _warn("the queue gives nothing", error)
                failures += 1
                self._stop.wait(PAUSES.after(failures))
            except Exception:  # noqa: BLE001 - a thread that ends here ends the worker's use
                _LOG.exception("taking from the queue has failed")
                self._stop.wait(PAUSES.after(failures + 1))

    def _room(self) -> int:
        """Return for how many messages there is room: one for each free thread, or one to look behind full bulkheads."""
        busy, resting = frozenset(self._busy()), frozenset(self._resting())
        now = time.monotonic()
        with self._lock:
            given = (self._groups.keys() | busy) - resting
            parked = [group.since for name, group in self._groups.items() if name not in busy]
        free = self._threads - len(given)
        if free > 0:
            return min(free, BATCH)
        stuck = bool(parked) and now - min(parked) >= STUCK
        return int(len(busy - resting) < self._threads and len(parked) < (MOST_PARKED if stuck else PARKED))

    def _received(self, messages: Sequence[Received]) -> None:
        if self._stop.is_set():
            self._back(messages, 0)
            return
        targets = []
        for each in messages:
            try:
                work = message.decode(each.body)
            except ValueError as error:
                self._unfit(each, str(error), 0)  # no time mends it, and those of its target wait behind it
                continue
            if template_of(lead_target(work.job.target)) not in self._names:
                seconds = TRANSIENT.after(each.count)  # another worker may know it already
                self._unfit(each, f"there is no target {work.job.target}", seconds)
                continue
            if (seconds := early(work)) > 0:
                self._back([each], seconds)
                continue
            self._hold(work, each)
            targets.append(work.job.target)
        for target in dict.fromkeys(targets):
            self._hand(target)

    def _unfit(self, received: Received, seen: str, seconds: float) -> None:
        fields = {"message": received.id, "group": received.group, "received": received.count, "seen": seen}
        _LOG.warning("a message can't be used; it ends as a dead letter", extra={"fields": fields})
        self._back([received], seconds)

    def _hold(self, work: Work, received: Received) -> None:
        """Put a message behind those of its target. One that we have already comes with a new receipt."""
        with self._lock:
            group = self._groups.setdefault(work.job.target, _Group())
            if work.run in group.given:
                group.given[work.run] = received
                return
            group.behind = deque((each, kept) for each, kept in group.behind if each.run != work.run)
            group.behind.append((work, received))

    def _hand(self, target: str) -> None:
        """Hand out a target's next: one asked by name alone, plain ones together."""
        with self._lock:
            group = self._groups.get(target)
            if group is None or group.given or self._stop.is_set():
                return
            works: list[Work] = []
            while group.behind and not (works and (works[0].job.acts or group.behind[0][0].job.acts)):
                work, received = group.behind.popleft()
                group.given[work.run] = received
                works.append(work)
            group.since = time.monotonic()
            if not works:
                del self._groups[target]
        for work in works:
            self._take(work)

    def _keep(self) -> None:
        while not self._ended.wait(VISIBLE / 3):
            try:
                with self._lock:
                    held = [each for group in self._groups.values() for each in group.held()]
                self._back(held, VISIBLE)
            except Exception:  # noqa: BLE001 - a thread that ends here lets others run what we run
                _LOG.exception("keeping messages has failed")

    def _back(self, messages: Sequence[Received], seconds: float) -> None:
        try:
            self._queue.postpone(messages, seconds)
        except QueueUnavailable as error:
            _warn("messages keep the time they had", error)

    def _acknowledge(self, messages: Sequence[Received]) -> None:
        try:
            self._queue.delete(messages)
        except QueueUnavailable as error:
            _warn("what has ended isn't acknowledged, and will be run again", error)


def _warn(what: str, error: SenderError) -> None:
    _LOG.warning(what, extra={"fields": {"code": error.code, "seen": str(error)}})
