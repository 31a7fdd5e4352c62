"""Keep-alive pools of one API server, straight or through the proxy that a kubeconfig or the environment names.

As `kubernetes.client` makes them, which takes a third of a second to load; `tests/unit/cluster/test_kubeconfig_vendor.py` compares both.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import urllib3
from urllib3.connection import HTTPConnection

_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 9}
"""As client-go asks the kernel for: an idle watch that a load balancer dropped is found out."""
_SOCKS = frozenset({"socks5", "socks5h", "socks4", "socks4a"})


def pool_of(host: str, tls: Mapping[str, Any], proxy: str | None, size: int) -> urllib3.PoolManager:
    """Return a pool of this many connections. `proxy`: the kubeconfig's; empty: none; None: the environment decides.

    Raises:
        ValueError, OSError: the addresses or the files can't be used.

    """
    given = {**tls, "maxsize": size, "socket_options": _socket_options()}
    environment = getproxies()
    if proxy is None:
        proxy = environment.get(urlsplit(host).scheme) or environment.get("all")
    if not proxy or _bypassed(host, environment.get("no", "")):
        return urllib3.PoolManager(**given)
    scheme, separator, _ = proxy.partition("://")
    if separator and scheme.lower() in _SOCKS:
        from urllib3.contrib.socks import SOCKSProxyManager  # noqa: PLC0415 - needs PySocks, which few have

        return SOCKSProxyManager(proxy, **given)
    return urllib3.ProxyManager(proxy, **given)


def _socket_options() -> list[tuple[int, int, int]]:
    kept = [(socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in _ALIVE.items() if hasattr(socket, name)]
    return [*HTTPConnection.default_socket_options, (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *kept]


def _bypassed(url: str, no_proxy: str) -> bool:
    """Whether NO_PROXY names a server: by address, network, name or the end of a name, with or without its port."""
    parts = urlsplit(url)
    if not parts.hostname:
        return True
    names = (parts.hostname.lower(), parts.netloc.lower())
    for entry in filter(None, (each.strip().lower() for each in no_proxy.split(","))):
        bare = entry.lstrip(".")
        if entry == "*" or _within(names[0], entry) or any(name == bare or name.endswith(f".{bare}") for name in names):
            return True
    return False


def _within(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
