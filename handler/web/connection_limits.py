"""How many may stand at the door: connections in all and of one peer, and bytes in all.

Law: whatever is full, the oldest connection whose request isn't whole gives way to the newest, so that a signed delivery always gets in.
A whole request is never dropped; where only such are left, the newest is turned away. An address serves these bounds, and logs, alone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

MIB = 1024 * 1024
C = TypeVar("C")
UNCOUNTED = ""  # the peer of connections that count in all, and for no peer


@dataclass(frozen=True, slots=True)
class Bounds:
    """`connections` in all, `of_peer` whose requests aren't whole, `held`: bytes of heads and bodies in memory."""

    connections: int = 1000
    of_peer: int = 64
    held: int = 100 * MIB


@dataclass(frozen=True, slots=True)
class FrontLimits:
    """Limits of the loop in front of the application's threads.

    `proxies`: networks of trusted proxies; `max_body`: bytes of a body; `refused`: called with status and seconds of each request that
    reaches no thread; `streams`: whether there is a view that opens streams of events.
    """

    proxies: tuple[str, ...]
    max_body: int
    refused: Callable[[int, float], None]
    streams: bool = False


class OpenConnections(Generic[C]):
    """The open connections, the oldest first."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._waiting: dict[C, str] = {}
        self._peers: dict[str, dict[C, None]] = {}
        self._whole: set[C] = set()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._whole)

    def __iter__(self) -> Iterator[C]:
        return chain(self._waiting, self._whole)

    def add(self, each: C, peer: str) -> None:
        """Add a connection, or move it to another peer; it becomes the newest then."""
        self.remove(each)
        self._waiting[each] = peer
        if peer:
            self._peers.setdefault(peer, {})[each] = None

    def whole(self, each: C) -> None:
        """Note that a request is whole: it isn't dropped any more."""
        self.remove(each)
        self._whole.add(each)

    def remove(self, each: C) -> None:
        """Forget a connection."""
        self._whole.discard(each)
        peer = self._waiting.pop(each, UNCOUNTED)
        if peer:
            of_peer = self._peers[peer]
            del of_peer[each]
            if not of_peer:
                del self._peers[peer]

    def surplus(self, newest: C, held: int) -> C | None:
        """Return the connection to drop now, None: none. `newest`: the one that was opened or sent last; `held`: bytes in memory."""
        of_peer = self._peers.get(self._waiting.get(newest, UNCOUNTED), {})
        if len(of_peer) > self._bounds.of_peer:
            return next(iter(of_peer))
        if len(self) > self._bounds.connections or held > self._bounds.held:
            return next(iter(self._waiting), None)
        return None


class Peers:
    """Which peer a connection counts for. `proxies`: networks whose connections are others' deliveries."""

    def __init__(self, proxies: Iterable[str] = ()) -> None:
        self._proxies = tuple(ipaddress.ip_network(each, strict=False) for each in proxies)

    def peer(self, client: Any) -> str:
        """Return the peer of an accepted connection; empty for a trusted proxy, which names its client later."""
        found = _address(client[0]) if isinstance(client, tuple) else None
        return UNCOUNTED if found is None or self._proxy(found) else _counted(found)

    def client(self, client: Any, headers: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
        """Return the address a trusted proxy has connected for, and the peer it counts for: of X-Forwarded-For the last that is no proxy.

        None: no trusted proxy has connected, or it names no address.
        """
        if not self._proxies or self.peer(client):
            return None
        hops = ",".join(value for name, value in headers if name == "X-FORWARDED-FOR").split(",")
        for hop in reversed(hops):
            found = _address(_bare(hop.strip()))
            if found is None:
                return None
            if not self._proxy(found):
                return str(found), _counted(found)
        return None

    def _proxy(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
        return any(address in network for network in self._proxies)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _counted(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """Return what is counted as one peer: an IPv4 address, or the 64 bits of an IPv6 network, whose hosts choose the rest."""
    return str(address) if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))


def _bare(hop: str) -> str:
    """Return an address without the port that some proxies add."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
