"""A process that holds a Lease and can be stopped in the middle. It answers `check` and ends on anything else."""

from __future__ import annotations

from multiprocessing.connection import Connection

from handler.model.errors import LeaseLost
from handler.state.lease import LeaseLock
from tests.rooms.state.conftest import real_objects


def hold(kubeconfig: str, namespace: str, pipe: Connection) -> None:
    """Take the Lease, say so, then tell what `check` says as often as asked."""
    held = LeaseLock(real_objects(kubeconfig), namespace, "anneal-shop", "paused", 2.0).acquire()
    pipe.send("held")
    while pipe.recv() == "check":
        try:
            held.check()
            pipe.send("ours")
        except LeaseLost:
            pipe.send("lost")
