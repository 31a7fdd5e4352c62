"""The way from a handler to the API server, watched: every request counted, a chosen one met by a kill, a pause or a gate."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from handler.cluster.connect import ClusterConnection
from tests.rooms.cluster.faulty_proxy import Handler, Wire

WRITES = ("POST", "PUT", "PATCH", "DELETE")

Chosen = Callable[[str, str], bool]
Act = Callable[[Handler], bool]


def is_write(method: str, path: str) -> bool:
    """Whether a request changes the cluster. Access reviews and dry runs leave nothing behind."""
    return method in WRITES and "dryRun" not in path and "reviews" not in path


def is_object_write(method: str, path: str) -> bool:
    """Whether a request writes an object of a target: neither a state nor a Lease of ours."""
    ours = "/anneal-s-" in path or path.partition("?")[0].endswith(("/leases", "/namespaces/anneal-e2e/configmaps"))
    return is_write(method, path) and not ours


@dataclass
class Wired:
    """A proxy. `chosen` requests are counted; the one with the number `at` is met by `act`, which says whether it goes on."""

    wire: Wire
    kubeconfig: Path
    chosen: Chosen = is_write
    at: int = 0
    act: Act = lambda handler: True
    count: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def over(cls, connection: ClusterConnection, kubeconfig: Path) -> Wired:
        wire = Wire(connection)
        wire.server.handle_error = lambda *_: None  # type: ignore[method-assign]  # who was killed doesn't hear its answers
        made = cls(wire, wire.kubeconfig(kubeconfig))
        wire.only = made._counts
        return made

    def _counts(self, method: str, path: str) -> bool:
        """Count a chosen request, and lay the trick out for the one that is meant."""
        if not self.chosen(method, path):
            return False
        with self.lock:
            self.count += 1
            return self.count == self.at

    def meet(self, at: int, act: Act, chosen: Chosen = is_write) -> None:
        """Meet the request with this number, counted from now on, by an act."""
        self.chosen, self.at, self.count = chosen, at, 0
        self.wire.tricks[:] = [act]

    @property
    def seen(self) -> list[tuple[str, str]]:
        """Method and path of every request so far."""
        return self.wire.seen

    def forget(self) -> None:
        """Count anew."""
        self.wire.seen.clear()

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [request for request in self.seen if is_write(*request)]

    @property
    def object_writes(self) -> list[tuple[str, str]]:
        return [request for request in self.seen if is_object_write(*request)]

    def close(self) -> None:
        self.wire.close()
