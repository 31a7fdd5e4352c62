"""Runs that are killed at a chosen request: SIGKILL, from outside, no hook in the handler."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable

from handler.model.event import Job
from handler.model.names import state_name
from tests.e2e.api_proxy import Chosen, Wired, is_write
from tests.e2e.one_target import STATES, Shop
from tests.patience import until
from tests.rooms.cluster.faulty_proxy import Handler

Wire = Callable[[], Wired]
AT_ONCE = 8
"""Shops that are killed at once where a run waits more than it works: for pods, for a time-out."""


def is_recorded(method: str, path: str) -> bool:
    """Whether a request writes an object or the record: a kill anywhere between two of them is a kill after the first.

    Writes of the Lease come when time has passed, so they aren't counted.
    """
    return is_write(method, path) and "/leases/" not in path


def kill_after(shop: Shop, wired: Wire, number: int, chosen: Chosen, job: Job | None = None) -> bool:
    """Run in a process of its own that dies as soon as the API server has done the chosen request with this number.

    False: the run had ended by then. Two runs of the same needn't ask equally often: a write whose answer comes late is asked again.
    The next run finds the Lease long expired.
    """
    wire = wired()
    child = shop.child(wire.kubeconfig)

    def kill(handler: Handler) -> bool:
        child.signal(signal.SIGSTOP)  # else its other threads go on for as long as the server takes
        handler.forward(deaf=True)
        child.signal(signal.SIGKILL)
        wire.wire.life += 1  # whatever it still sent never arrives
        handler.reset()
        return False

    wire.meet(number, kill, chosen)
    killed = child.begin(job or shop.job()).result() is None
    if killed:
        until(lambda: not wire.wire.under_way)  # what has arrived is done before the next run, as if that began later
        outlive(shop)
    return killed


def outlive(shop: Shop) -> None:
    """Let a dead worker's Lease look as it does a long time after, without the wait.

    It had its usual duration, so that no busy machine takes it from those that live.
    """
    old = json.dumps({"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}})
    shop.kubectl.tried("patch", "lease", state_name(shop.name), "-n", STATES, "--type=merge", "-p", old)
