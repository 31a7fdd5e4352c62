"""The lock of a target: a Lease, taken by compare-and-swap. Whoever finds it held leaves a request, which the holder serves.

Another's Lease is expired when nothing in it changed for a full duration as observed by us on the monotonic clock (client-go's rule), or
when it is older than the server's `Date` by more than the duration and 5 s. A busy Lease is never a failure.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from handler.model.errors import Busy, Moved
from handler.state.clock import Clock, Instant, SystemClock
from handler.state.cluster_port import Body, StateObjects, create_in_namespace, replace_same
from handler.state.held_lease import HeldLease
from handler.state.lease_record import LeaseRecord, freed, new_lease, taken, with_request
from handler.state.record_format import stamp

_SLACK = 5.0
"""Seconds that the server's `Date` may be wrong: whole seconds, latency, several API servers."""
_TRIES = 10


@dataclass(frozen=True, slots=True)
class Peek:
    """What one look at a Lease tells. `age`: seconds since its last renewal by the server's clock; `renewing`: not overdue."""

    holder: str
    renewing: bool
    age: float
    requested: bool


class LeaseLock:
    """The lock of one target.

    Args:
        name: the Lease's, like the state's (`anneal-<target>`). holder: who we are, for people; made unique for each tenure.
        duration: seconds that a renewal lasts. labels: put on a new Lease.
    """

    def __init__(
        self,
        objects: StateObjects,
        namespace: str,
        name: str,
        holder: str,
        duration: float = 15.0,
        clock: Clock | None = None,
        labels: dict[str, str] | None = None,
    ) -> None:
        self._objects = objects
        self._namespace = namespace
        self._name = name
        self._holder = holder
        self._duration = duration
        self._clock = clock or SystemClock()
        self._labels = {"app.kubernetes.io/managed-by": "anneal", **(labels or {})}
        self._subject = f"Lease/{namespace}/{name}"
        self._seen: tuple[tuple[str, str, int, float], float] | None = None

    def acquire(self, wait: float = 0.0, requested: Callable[[], None] | None = None, stop: threading.Event | None = None) -> HeldLease:
        """Take the Lease and renew it from now on.

        Where another holds it: `requested` is called once (it writes what is asked to the state), the request is left on the Lease, and the
        Lease is watched for `wait` seconds: taken as soon as it is free or expired. One duration (in whole seconds) is enough to take
        over from the dead. `stop` ends the watch.

        Raises:
            Busy: still held by another; what was asked is left for it.
            AccessDenied, ClusterUnavailable: the Lease can't be read or written.
        """
        tenant = f"{self._holder}_{uuid.uuid4().hex[:8]}"
        stop = stop or threading.Event()
        end: float | None = None
        asked = False
        while True:
            late = end is not None and self._clock.now().monotonic >= end
            body, expired = self._look()
            end = self._clock.now().monotonic + wait if end is None else end
            if body is None or expired or LeaseRecord.of(body).holder in ("", tenant):
                if held := self._take(body, tenant):
                    return held.start()
            elif not asked:
                asked = True
                if requested:
                    requested()
                self.request()
            elif late or self._clock.wait(stop, min(max(wait, 0.0), self._pause())):
                raise Busy.of(self._subject, f"{LeaseRecord.of(body).holder} holds it; it runs again when it is done")

    def request(self) -> bool:
        """Ask whoever holds the Lease to run again when it is done. False when nobody holds it: take it yourself.

        Write what is asked to the state first. Raises Moved when others were quicker ten times.
        """
        for _ in range(_TRIES):
            body = self._get()
            if body is None or not LeaseRecord.of(body).holder:
                return False
            if LeaseRecord.of(body).requested:
                return True
            try:
                replace_same(self._objects, with_request(body, f"{stamp(self._objects.server_time())} {self._holder}"))
            except Moved:
                continue
            return True
        raise Moved.of(self._subject, f"changed {_TRIES} times while a run was requested")

    def peek(self) -> Peek | None:
        """Look once, for people; None when nobody holds it."""
        body = self._get()
        if body is None or not LeaseRecord.of(body).holder:
            return None
        found = LeaseRecord.of(body)
        age = max(self._objects.server_time() - found.renewed, 0.0)
        return Peek(found.holder, age <= found.duration + _SLACK, age, bool(found.requested))

    def force_unlock(self, stop: threading.Event | None = None) -> str:
        """Free a dead holder's Lease and return its name, empty when it was free. Requests stay on it.

        Watches for one duration at most. Raises Busy when the holder renews, or when `stop` ends the watch.
        """
        stop = stop or threading.Event()
        first: LeaseRecord | None = None
        while True:
            body, expired = self._look()
            if body is None or not (found := LeaseRecord.of(body)).holder:
                return ""
            first = first or found
            if found.tenure != first.tenure:
                raise Busy.of(self._subject, f"{found.holder} holds it and renews it", fix="suspend the target, or end that process first")
            if expired:
                try:
                    replace_same(self._objects, freed(body))
                except Moved:
                    continue
                return found.holder
            if self._clock.wait(stop, self._pause()):
                raise Busy.of(self._subject, f"{found.holder} holds it; it wasn't watched long enough to know whether it lives")

    def _pause(self) -> float:
        return min(1.0, self._duration / 10)

    def _get(self) -> Body | None:
        return self._objects.get("Lease", self._namespace, self._name)

    def _look(self) -> tuple[Body | None, bool]:
        """Read the Lease; say whether its holder must be dead. What was seen is remembered between calls."""
        body = self._get()
        if body is None:
            self._seen = None
            return None, False
        found, now = LeaseRecord.of(body), self._clock.now().monotonic
        if self._seen is None or self._seen[0] != found.tenure:
            self._seen = (found.tenure, now)
        duration = found.duration or self._duration
        unchanged = now - self._seen[1] >= duration
        overdue = bool(found.renewed) and self._objects.server_time() - found.renewed > duration + _SLACK
        return body, unchanged or overdue

    def _take(self, body: Body | None, tenant: str) -> HeldLease | None:
        """Swap ourselves in; None when another was quicker."""
        sent: Instant = self._clock.now()
        base = body or new_lease(self._namespace, self._name, self._labels)
        wanted = taken(base, tenant, self._duration, self._objects.server_time())
        try:
            stored = replace_same(self._objects, wanted) if body else create_in_namespace(self._objects, wanted)
        except Moved:
            return None
        return HeldLease(self._objects, self._clock, stored, sent, self._duration)
