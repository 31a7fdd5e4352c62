"""The lock of a target: a Lease, taken by compare-and-swap, renewed by its own thread, checked before every write.

A holder counts from when its last answered renewal was *sent*, on the fastest of three clocks; others from when they *see* one, so they
wait longer: nothing in the Lease changed for a full duration on their monotonic clock (client-go's rule), or it is older than the server's
`Date` by more than the duration and 5 s. A busy Lease is never a failure: a request is left on it, which the holder serves.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import NoReturn, Protocol, Self

from handler.model.errors import AnnealError, Busy, LeaseLost, Moved
from handler.model.quotation import quoted
from handler.state.cluster_port import Body, StateObjects, create_in_namespace, replace_same
from handler.state.lease_record import REQUESTED, LeaseRecord, annotated, freed, new_lease, renewed, taken, without_request
from handler.state.record_format import stamp


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment on three clocks, in seconds: monotonic stands still while a machine sleeps, the wall clock may be set back or ahead."""

    monotonic: float
    boot: float
    wall: float

    def since(self, earlier: Instant) -> float:
        """Return the longest time that can have passed: what a holder must assume of its own Lease."""
        return max(self.monotonic - earlier.monotonic, self.boot - earlier.boot, self.wall - earlier.wall)


class Clock(Protocol):
    """Reads the time, and waits."""

    def now(self) -> Instant:
        """Read all clocks."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set (True) or the time is over (False)."""


class SystemClock:
    """The machine's clocks. Where CLOCK_BOOTTIME is missing (macOS), monotonic stands in for it."""

    _boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now(self) -> Instant:
        """Read all clocks."""
        return Instant(time.monotonic(), time.clock_gettime(self._boot), time.time())

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set (True) or the time is over (False)."""
        return event.wait(seconds)


class HeldLease:
    """A Lease that is ours, made by `LeaseLock.acquire`, safe to share between threads; once lost it stays lost.

    As a context manager it hands over at the end.
    """

    def __init__(self, objects: StateObjects, clock: Clock, body: Body, sent: Instant, duration: float) -> None:
        self._objects = objects
        self._clock = clock
        self._body = body
        self._sent = sent
        self._duration = duration
        self._record = LeaseRecord.of(body)
        self._subject = f"Lease/{body['metadata']['namespace']}/{body['metadata']['name']}"
        self._lost = ""
        self._trouble = ""
        self._mutex = threading.RLock()
        self._ended = threading.Event()

    @property
    def token(self) -> str:
        """The fencing token of this tenure (`LeaseRecord.token`)."""
        return self._record.token

    @property
    def requested(self) -> str:
        """What is asked for meanwhile, as the last renewal saw it: when and by whom; empty: nothing."""
        return LeaseRecord.of(self._body).requested

    def check(self) -> None:
        """Raise LeaseLost unless the Lease is certainly ours. Costs no request: call it before every write."""
        self._check(self._clock.now())

    def _check(self, now: Instant) -> None:
        if self._lost:
            self._lose(self._lost)
        if now.since(self._sent) >= self._duration:
            self._lose(f"wasn't renewed for {self._duration:g} s" + (f" ({self._trouble})" if self._trouble else ""))

    def start(self) -> Self:
        """Renew from now on, in a thread of its own."""
        threading.Thread(target=self._keep, name=f"renew {self._subject}", daemon=True).start()
        return self

    def _keep(self) -> None:
        """Renew every third of the duration, after a failure sooner, until our own expiry."""
        pause = self._duration / 3
        while not self._clock.wait(self._ended, pause):
            try:
                self.renew()
                pause = self._duration / 3
            except LeaseLost:
                return
            except AnnealError as failure:
                self._trouble = f"last renewal: {failure}"
                pause = self._duration / 15

    def renew(self) -> None:
        """Renew once. Raises LeaseLost when it expired or another holds it, other errors when the API server can't be asked."""
        with self._mutex:
            sent = self._clock.now()
            self._check(sent)
            # Our idea of the server's time may have stood still while the machine slept; renewTime mustn't lag behind.
            least = LeaseRecord.of(self._body).renewed + sent.boot - self._sent.boot
            self._swap(lambda body: renewed(body, max(least, self._objects.server_time())))
            self._sent = sent

    def take_request(self) -> bool:
        """Clear a request that came in meanwhile; return whether there was one: then run again. Raises LeaseLost."""
        self.check()
        return self._swap(lambda body: without_request(body) if LeaseRecord.of(body).requested else None)

    def release(self) -> bool:
        """Free the Lease in one swap; False: a run was requested before, so it stays ours and we run again; True also where it was lost."""
        try:
            self.check()
            free = self._swap(lambda body: None if LeaseRecord.of(body).requested else freed(body))
        except LeaseLost:
            self.hand_over()
            return True
        if free:
            self._end()
        return free

    def hand_over(self) -> None:
        """Free the Lease at once and leave a request for the next holder. Never fails: an unreachable Lease expires by itself."""
        if self._ended.is_set():
            return
        try:
            with contextlib.suppress(AnnealError):
                self._swap(freed)
        finally:
            self._end()

    def remove(self) -> None:
        """Delete the Lease while it is ours, instead of freeing it. Raises LeaseLost."""
        with self._mutex:
            self._check(self._clock.now())
            metadata, is_left = self._body["metadata"], True
            while is_left:
                version = self._body["metadata"]["resourceVersion"]
                try:
                    self._objects.delete("Lease", metadata["namespace"], metadata["name"], uid=metadata["uid"], resource_version=version)
                    is_left = False
                except Moved:  # what is asked for meanwhile
                    self._read_again()
            self._end()

    def _end(self) -> None:
        self._lost = self._lost or "was released"
        self._ended.set()

    def _swap(self, change: Callable[[Body], Body | None]) -> bool:
        """PUT what `change` makes of the Lease; False when it makes nothing. On a 409 read again and go on while it is ours."""
        with self._mutex:
            if self._ended.is_set():
                self._lose(self._lost)
            while (wanted := change(self._body)) is not None:
                try:
                    self._body = replace_same(self._objects, wanted)
                except Moved:
                    self._read_again()
                else:
                    return True
            return False

    def _read_again(self) -> None:
        """Read the Lease; raise LeaseLost when it isn't ours any more."""
        namespace, name = self._body["metadata"]["namespace"], self._body["metadata"]["name"]
        body = self._objects.get("Lease", namespace, name)
        if body is None:
            self._lose("was deleted")
        found = LeaseRecord.of(body)
        if (found.token, found.holder) != (self.token, self._record.holder):
            self._lose(f"is held by {quoted(found.holder)}" if found.holder else "was freed by force")
        self._body = body

    def _lose(self, reason: str) -> NoReturn:
        self._lost = self._lost or reason
        raise LeaseLost.of(self._subject, reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.hand_over()


_SLACK = 5.0  # seconds that the server's `Date` may be wrong: whole seconds, latency, several API servers
_TRIES = 10


@dataclass(frozen=True, slots=True)
class Peek:
    """A Lease as read once. `age`: seconds since its last renewal by the server's clock; `renewing`: not overdue."""

    holder: str
    renewing: bool
    age: float
    requested: bool


@dataclass(slots=True, eq=False)
class LeaseLock:
    """The lock of one target. `name`: `state_name`; `holder`: our name, made unique for each tenure; `duration`: seconds of a renewal."""

    objects: StateObjects
    namespace: str
    name: str
    holder: str
    duration: float = 15.0
    clock: Clock = field(default_factory=lambda: SystemClock())  # noqa: PLW0108 - looked up at each call, for simulated clocks
    _seen: tuple[tuple[str, str, int, float], float] | None = field(default=None, init=False, repr=False)

    @property
    def _subject(self) -> str:
        return f"Lease/{self.namespace}/{self.name}"

    def acquire(self, wait: float = 0.0, requested: Callable[[], None] | None = None, stop: threading.Event | None = None) -> HeldLease:
        """Take the Lease and renew it from now on.

        Where another holds it: `requested` is called once (it writes what is asked to the state), the request is left on the Lease, and the
        Lease is watched for `wait` seconds, taken as soon as it is free or expired; one duration is enough to take over from the dead.
        `stop` ends the watch. Raises Busy: still held by another; AccessDenied, ClusterUnavailable: it can't be read or written.
        """
        tenant = f"{self.holder}_{uuid.uuid4().hex[:8]}"
        stop = stop or threading.Event()
        end: float | None = None
        asked = False
        while True:
            late = end is not None and self.clock.now().monotonic >= end
            body, expired = self._look()
            end = self.clock.now().monotonic + wait if end is None else end
            if body is None or expired or LeaseRecord.of(body).holder in ("", tenant):
                if held := self._take(body, tenant):
                    return held.start()
            elif not asked:
                asked = True
                if requested:
                    requested()
                self.request()
            elif late or self.clock.wait(stop, min(max(wait, 0.0), self._pause())):
                raise Busy.of(self._subject, f"{quoted(LeaseRecord.of(body).holder)} holds it; it runs again when it is done")

    def request(self) -> bool:
        """Ask the holder to run again when it is done; False: it is free. Raises Moved after ten tries.

        Write what is asked to the state first: the holder reads it there.
        """
        for _ in range(_TRIES):
            body = self._get()
            if body is None or not LeaseRecord.of(body).holder:
                return False
            if LeaseRecord.of(body).requested:
                return True
            try:
                replace_same(self.objects, annotated(body, {REQUESTED: f"{stamp(self.objects.server_time())} {self.holder}"}))
            except Moved:
                continue
            return True
        raise Moved.of(self._subject, f"changed {_TRIES} times while a run was requested")

    def peek(self) -> Peek | None:
        """Look once, for people; None when it is free."""
        body = self._get()
        if body is None or not LeaseRecord.of(body).holder:
            return None
        found = LeaseRecord.of(body)
        age = max(self.objects.server_time() - found.renewed, 0.0)
        return Peek(found.holder, age <= found.duration + _SLACK, age, bool(found.requested))

    def force_unlock(self, stop: threading.Event | None = None) -> str:
        """Free a dead holder's Lease and return its name, empty where it was free; requests stay on it.

        Raises Busy: the holder renews, or `stop` ends the watch.
        """
        stop = stop or threading.Event()
        first: LeaseRecord | None = None
        while True:
            body, expired = self._look()
            if body is None or not (found := LeaseRecord.of(body)).holder:
                return ""
            first = first or found
            if found.tenure != first.tenure:
                raise Busy.of(
                    self._subject, f"{quoted(found.holder)} holds it and renews it", fix="suspend the target, or end that process first"
                )
            if expired:
                try:
                    replace_same(self.objects, freed(body))
                except Moved:
                    continue
                return found.holder
            if self.clock.wait(stop, self._pause()):
                raise Busy.of(self._subject, f"{quoted(found.holder)} holds it; it wasn't watched long enough to know whether it lives")

    def _pause(self) -> float:
        return min(1.0, self.duration / 10)

    def _get(self) -> Body | None:
        return self.objects.get("Lease", self.namespace, self.name)

    def _look(self) -> tuple[Body | None, bool]:
        """Read the Lease; say whether its holder must be dead. What was seen is remembered between calls."""
        body = self._get()
        if body is None:
            self._seen = None
            return None, False
        found, now = LeaseRecord.of(body), self.clock.now().monotonic
        if self._seen is None or self._seen[0] != found.tenure:
            self._seen = (found.tenure, now)
        duration = found.duration or self.duration
        unchanged = now - self._seen[1] >= duration
        overdue = bool(found.renewed) and self.objects.server_time() - found.renewed > duration + _SLACK
        return body, unchanged or overdue

    def _take(self, body: Body | None, tenant: str) -> HeldLease | None:
        """Swap ourselves in; None when another was quicker."""
        sent: Instant = self.clock.now()
        wanted = taken(body or new_lease(self.namespace, self.name), tenant, self.duration, self.objects.server_time())
        try:
            stored = replace_same(self.objects, wanted) if body else create_in_namespace(self.objects, wanted)
        except Moved:
            return None
        return HeldLease(self.objects, self.clock, stored, sent, self.duration)
