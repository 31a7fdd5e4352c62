"""What the repositories of one handler share: the last commits, within one bound, and the connections to a host that is trusted alike.

A thousand repositories of one host take its connections in turn: neither open files nor the authorities that TLS loads grow with their
number. Who signs in is told by each request, never by a connection.
"""

from __future__ import annotations

import threading

from handler.source.bounded_connections import Pools
from handler.source.host_limits import HostLimits
from handler.source.tree_cache import TreeCache


class SharedConnections:
    """One handler's. Safe to share between threads. `most`: bytes of the commits that are kept."""

    def __init__(self, most: int = HostLimits().cache) -> None:
        self.commits = TreeCache(most)
        self._pools: dict[tuple[str, str, str], Pools] = {}
        self._lock = threading.Lock()

    def pools(self, scheme: str, netloc: str, ca_file: str) -> Pools:
        """Return the connections to a host; made once for all who trust it by the same authorities."""
        with self._lock:
            key = scheme, netloc.lower(), ca_file
            if key not in self._pools:
                self._pools[key] = Pools(scheme, netloc, ca_file)
            return self._pools[key]
