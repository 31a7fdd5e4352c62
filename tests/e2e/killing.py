"""Runs that are killed at a chosen request: SIGKILL, from outside, no hook in the handler."""

from __future__ import annotations

import signal
from collections.abc import Callable

from handler.model.event import Job
from tests.e2e.shop import Shop
from tests.e2e.wire import Chosen, Wired
from tests.rooms.cluster.wire import Handler

Wire = Callable[[], Wired]


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
