"""A Lease in our hands: renewed by its own thread, checked before every write, released when nothing more is asked.

The rule: from the moment the last answered renewal was *sent*, the Lease is ours for one duration on the fastest of three clocks
(clock.py). Others count from when they *see* a renewal, so they always wait longer. Once lost it stays lost.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from types import TracebackType
from typing import NoReturn, Self

from handler.model.errors import AnnealError, LeaseLost, Moved
from handler.state.clock import Clock, Instant
from handler.state.cluster_port import Body, StateObjects, replace_same
from handler.state.lease_record import LeaseRecord, freed, renewed, without_request


class HeldLease:
    """Made by `LeaseLock.acquire`. Safe to share between threads. As a context manager it hands over at the end.

    Args:
        body: the Lease as stored by our taking it. sent: when that request was sent. duration: seconds.
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
        """The fencing token of this tenure: `<lease uid>.<leaseTransitions>`."""
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
        """Renew every third of the duration; a failed renewal is tried again sooner, until our own expiry."""
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
        """Clear a request that came in meanwhile; return whether there was one. Whoever clears it runs again. Raises LeaseLost."""
        self.check()
        return self._swap(lambda body: without_request(body) if LeaseRecord.of(body).requested else None)

    def release(self) -> bool:
        """Free the Lease, unless a run was requested meanwhile: then it stays ours, False is returned, and we run again.

        It is one swap: a request either comes before it and is seen, or finds the Lease free. True when it isn't ours any more.
        """
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
            self._lose(f"is held by {found.holder}" if found.holder else "was freed by force")
        self._body = body

    def _lose(self, reason: str) -> NoReturn:
        self._lost = self._lost or reason
        raise LeaseLost.of(self._subject, reason)

    def __enter__(self) -> Self:
        """Nothing to do: it is held already."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Hand over, whatever happened."""
        self.hand_over()
