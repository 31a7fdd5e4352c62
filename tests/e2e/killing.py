"""Runs that are killed at a chosen request: SIGKILL, from outside, no hook in the handler."""

from __future__ import annotations

import signal
from collections.abc import Callable

from handler.model.event import Job
from tests.e2e.shop import Shop
from tests.e2e.wire import Chosen, Wired, is_write
from tests.rooms.cluster.wire import Handler

Wire = Callable[[], Wired]
AT_ONCE = 8
"""Shops that are killed at once where a run waits more than it works: for a dead worker's Lease, for pods, for a time-out."""


def is_recorded(method: str, path: str) -> bool:
    """Whether a request writes an object or the record: a kill anywhere between two of them is a kill after the first.

    Writes of the Lease come when time has passed, so they aren't counted.
    """
    return is_write(method, path) and "/leases/" not in path


def kill_after(shop: Shop, wired: Wire, number: int, chosen: Chosen, job: Job | None = None) -> bool:
    """Run in a process of its own that dies as soon as the API server has done the chosen request with this number.

    False: the run had ended by then. Two runs of the same needn't ask equally often: a write whose answer comes late is asked again.
    """
    wire = wired()
    child = shop.child(wire.kubeconfig)

    def kill(handler: Handler) -> bool:
        handler.forward(deaf=True)
        child.signal(signal.SIGKILL)
        handler.reset()
        return False

    wire.meet(number, kill, chosen)
    return child.begin(job or shop.job()).result() is None
