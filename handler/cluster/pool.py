"""Keep-alive pools of one API server: TLS and proxy as `kubernetes.client` has them, which takes a third of a second to load.

Certificates and keys given as data lie in a private directory only while TLS loads them; files are read at each connection.
"""

from __future__ import annotations

import socket
import ssl
import tempfile
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import urllib3
from urllib3.connection import HTTPConnection
from urllib3.util.ssl_ import create_urllib3_context

_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 9}
"""As client-go asks the kernel for: an idle watch that a load balancer dropped is found out."""
_SOCKS = frozenset({"socks5", "socks5h", "socks4", "socks4a"})


def pool_of(host: str, tls: Mapping[str, Any], proxy: str | None, size: int) -> urllib3.PoolManager:
    """Return a pool of `size` connections. `proxy`: empty: none; None: the environment decides. Raises ValueError, OSError."""
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
    """Whether NO_PROXY names a server: by address, network, or the end of its name, with or without port."""
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


Content = bytes | str
"""Bytes that are the PEM itself, or the path of its file; empty: there is none."""


def pooled(authority: Content, certificate: Content, key: Content, *, verify: bool) -> dict[str, Any]:
    """Return a pool's TLS arguments. Raises OSError (ssl.SSLError), ValueError, TypeError: the content can't be used."""
    given: dict[str, Any] = {
        "cert_reqs": ssl.CERT_REQUIRED if verify else ssl.CERT_NONE,
        "ca_certs": authority or None if isinstance(authority, str) else None,
        "ca_cert_data": authority.decode() or None if isinstance(authority, bytes) else None,
    }
    if any(isinstance(content, bytes) and content for content in (certificate, key)):
        return {**given, "cert_file": None, "key_file": None, "ssl_context": _context(certificate, key, given["cert_reqs"])}
    return {**given, "cert_file": certificate or None, "key_file": key or None}


def _context(certificate: Content, key: Content, verify: ssl.VerifyMode) -> ssl.SSLContext:
    context = create_urllib3_context(cert_reqs=verify)
    with tempfile.TemporaryDirectory(prefix="anneal-keys-", ignore_cleanup_errors=True) as directory:  # made with mode 0700
        files = [_file(content, Path(directory) / name) for name, content in (("certificate", certificate), ("key", key))]
        context.load_cert_chain(files[0], files[1], password="")  # type: ignore[arg-type]  # without a certificate this raises TypeError
    return context


def _file(content: Content, place: Path) -> str | None:
    if isinstance(content, str):
        return content or None
    if not content:
        return None
    place.touch(mode=0o600)
    place.write_bytes(content)
    return str(place)
